//! Names near one that nobody knows, for messages.

/// Known names near `name`, the nearest first: those that one edit or swap of neighbours for every three letters leads to,
/// then those that have it as a part, in order. Letter case does not matter.
pub fn near<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let name = name.to_lowercase();
    let mut found: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|k| {
            let lower = k.to_lowercase();
            let d = distance(&name, &lower);
            let part = !name.is_empty() && lower.contains(&name);
            if d <= reach(&name) { Some((d, k)) } else { part.then_some((usize::MAX, k)) }
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|(_, k)| k).collect()
}

/// Edits within which another name is near.
pub(crate) fn reach(name: &str) -> usize {
    name.chars().count().div_ceil(3).max(1)
}

/// Optimal string alignment distance: edits and swaps of neighbours.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let differs = usize::from(a[i - 1] != b[j - 1]);
            let mut d = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + differs);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                d = d.min(before[j - 2] + 1);
            }
            row.push(d);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_names_come_first_then_those_that_have_it_as_a_part() {
        let known = ["softmax", "softplus", "gelu", "relu", "relu6", "log_softmax", "relu"];
        assert_eq!(near("Rleu", known), ["relu", "gelu", "relu6"]);
        assert_eq!(near("soft", known), ["log_softmax", "softmax", "softplus"]);
        assert!(near("nosuch", known).is_empty());
        assert!(near("", known).is_empty());
    }
}
