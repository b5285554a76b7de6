//! `--blocks all|sample|LIST`: which blocks of a grid run.
//!
//! A list is items with commas between: a linear index (`7`), a range without its end (`100..110`), `last`, or block
//! indices `x:y:z` (`3:0:2`; `y` and `z` are 0 where left out after a colon).

use assay_simt::Blocks;

/// A fault in the text of `--blocks`, with the character at which it stands.
#[derive(Debug, PartialEq, Eq)]
pub struct BlocksError {
    /// The whole text.
    pub text: String,
    /// Byte offset of the fault.
    pub at: usize,
    /// What is wrong.
    pub what: String,
}

impl std::fmt::Display for BlocksError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let column = self.text[..self.at.min(self.text.len())].chars().count();
        write!(f, "bad --blocks: {}\n  {}\n  {}^", self.what, self.text, " ".repeat(column))
    }
}

/// Reads `--blocks` for a grid; a sample takes `seed`.
///
/// # Errors
/// `BlocksError` that points at the character.
pub fn parse(text: &str, grid: [u64; 3], seed: u64) -> Result<Blocks, BlocksError> {
    match text {
        "all" => return Ok(Blocks::All),
        "sample" => return Ok(Blocks::sample(seed)),
        _ => {}
    }
    let bad = |at: usize, what: String| BlocksError { text: text.to_owned(), at, what };
    // A grid beyond the limits of a launch is refused there.
    let total = grid.iter().fold(1u64, |n, d| n.saturating_mul(*d));
    let mut list = Vec::new();
    let mut at = 0;
    for item in text.split(',') {
        let number = |word: &str, from: usize| -> Result<u64, BlocksError> {
            let hint = "write `all`, `sample`, or indices such as `0,5,100..110,last` or `3:0:2`";
            word.parse().map_err(|_| bad(from, format!("`{word}` is not a block index; {hint}")))
        };
        let inside = |index: u64, from: usize| {
            if index < total {
                Ok(index)
            } else {
                Err(bad(from, format!("no block {index}: the grid has {total}")))
            }
        };
        if item == "last" {
            list.push(inside(total.saturating_sub(1), at)?);
        } else if let Some(dots) = item.find("..") {
            let (from, to) = (number(&item[..dots], at)?, number(&item[dots + 2..], at + dots + 2)?);
            if to <= from {
                return Err(bad(at, format!("the range {from}..{to} is empty")));
            }
            inside(from, at)?;
            inside(to - 1, at + dots + 2)?;
            if (to - from).saturating_add(list.len() as u64) > Blocks::MAX_LISTED as u64 {
                let most = Blocks::MAX_LISTED;
                return Err(bad(at, format!("more than {most} blocks; `all` runs every block")));
            }
            list.extend(from..to);
        } else if item.contains(':') {
            let mut index = [0u64; 3];
            let mut from = at;
            for (k, word) in item.split(':').enumerate() {
                let Some(place) = index.get_mut(k) else {
                    return Err(bad(from, "a block has at most three indices, x:y:z".into()));
                };
                *place = number(word, from)?;
                if *place >= grid[k] {
                    let axis = ["x", "y", "z"][k];
                    return Err(bad(from, format!("no block {axis} = {place}: the grid has {}", grid[k])));
                }
                from += word.len() + 1;
            }
            let linear = Blocks::linear(grid, index);
            list.push(linear.ok_or_else(|| bad(at, "no such block in the grid".into()))?);
        } else {
            list.push(inside(number(item, at)?, at)?);
        }
        at += item.len() + 1;
    }
    Ok(Blocks::List(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: [u64; 3] = [8, 4, 2];

    #[test]
    fn every_form_is_read() {
        let list = |text: &str| match parse(text, GRID, 0) {
            Ok(Blocks::List(l)) => l,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(parse("all", GRID, 0), Ok(Blocks::All));
        assert_eq!(parse("sample", GRID, 9), Ok(Blocks::sample(9)));
        assert_eq!(list("0,5,10..13,last"), [0, 5, 10, 11, 12, 63]);
        assert_eq!(list("3:2:1"), [3 + 8 * (2 + 4)]);
        assert_eq!(list("3:2"), [3 + 8 * 2]);
        assert_eq!(list("63"), [63]);
    }

    #[test]
    fn errors_point_at_the_guilty_character() {
        for (text, at) in [
            ("", 0),
            ("some", 0),
            ("1,x", 2),
            ("1,2,", 4),
            ("64", 0),
            ("1,64", 2),
            ("5..5", 0),
            ("0,60..70", 6),
            ("5..", 3),
            ("..5", 0),
            ("1:2:1:0", 6),
            ("1:4:0", 2),
            ("0,7:3:2", 6),
            ("1:-1", 2),
            ("-1", 0),
        ] {
            assert_eq!(parse(text, GRID, 0).map_err(|e| e.at), Err(at), "{text}");
        }
        let shown = parse("0,64", GRID, 0).unwrap_err().to_string();
        assert_eq!(shown, "bad --blocks: no block 64: the grid has 64\n  0,64\n    ^");
        assert!(parse("0..2000000000", [1 << 31, 1, 1], 0).unwrap_err().what.contains("16777216"));
    }
}
