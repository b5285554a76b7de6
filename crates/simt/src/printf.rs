//! `printf` on the device: conversions of a format string.
//!
//! Source: CUDA C++ Programming Guide, "Formatted Output": flags `# ' ' 0 + -`, width, precision, sizes `h l ll`,
//! types `% c d i o u x X p s e E f F g G a A`. Arguments lie in a buffer at their natural alignment.

/// A conversion of a format string.
#[derive(Clone, Debug, PartialEq)]
struct Piece {
    /// Text before it.
    text: String,
    flags: String,
    width: Option<usize>,
    precision: Option<usize>,
    long: bool,
    short: bool,
    conversion: char,
}

/// A parsed format string.
pub(crate) struct Pieces {
    list: Vec<Piece>,
}

fn parse(format: &str) -> (Vec<Piece>, String) {
    let mut list = Vec::new();
    let mut text = String::new();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        let mut flags = String::new();
        while let Some(&f) = chars.peek() {
            if !"#0-+ ".contains(f) {
                break;
            }
            flags.push(f);
            chars.next();
        }
        let mut number = || {
            let mut n: Option<usize> = None;
            while let Some(d) = chars.peek().and_then(|c| c.to_digit(10)) {
                n = Some((n.unwrap_or(0) * 10 + d as usize).min(256));
                chars.next();
            }
            n
        };
        let width = number();
        let precision = if chars.peek() == Some(&'.') {
            chars.next();
            let mut n = 0usize;
            while let Some(d) = chars.peek().and_then(|c| c.to_digit(10)) {
                n = (n * 10 + d as usize).min(100);
                chars.next();
            }
            Some(n)
        } else {
            None
        };
        let (mut long, mut short) = (false, false);
        while let Some(&c) = chars.peek() {
            match c {
                'l' | 'z' | 'j' | 't' => long = true,
                'h' => short = true,
                _ => break,
            }
            chars.next();
        }
        let Some(conversion) = chars.next() else { break };
        if conversion == '%' {
            text.push('%');
            continue;
        }
        let text = std::mem::take(&mut text);
        list.push(Piece { text, flags, width, precision, long, short, conversion });
    }
    (list, text)
}

impl Pieces {
    pub(crate) fn new(format: &str) -> Pieces {
        Pieces { list: parse(format).0 }
    }

    /// The arguments' bits, read by `next(size)`.
    pub(crate) fn values(&self, next: &mut dyn FnMut(u64) -> u64) -> Vec<u64> {
        let size = |p: &Piece| match p.conversion {
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'a' | 'A' | 's' | 'p' => 8,
            _ if p.long => 8,
            _ => 4,
        };
        self.list.iter().map(|p| next(size(p))).collect()
    }
}

/// The text.
pub(crate) fn render(format: &str, values: &[u64], mut string: impl FnMut(u64) -> String) -> String {
    let (list, rest) = parse(format);
    let mut out = String::new();
    for (p, v) in list.iter().zip(values) {
        out.push_str(&p.text);
        let body = match p.conversion {
            'd' | 'i' => {
                let v = if p.long { *v as i64 } else { i64::from(*v as i32) };
                let v = if p.short { i64::from(v as i16) } else { v };
                signed(p, v < 0, v.unsigned_abs().to_string())
            }
            'u' => {
                if p.long {
                    v.to_string()
                } else {
                    (*v as u32).to_string()
                }
            }
            'x' => format!("{v:x}"),
            'X' => format!("{v:X}"),
            'o' => format!("{v:o}"),
            'p' => format!("{v:#x}"),
            'c' => char::from(*v as u8).to_string(),
            's' => {
                let s = string(*v);
                p.precision.map_or_else(|| s.clone(), |n| s.chars().take(n).collect())
            }
            'f' | 'F' => {
                let x = f64::from_bits(*v);
                signed(p, x.is_sign_negative() && !x.is_nan(), float(x, p.precision.unwrap_or(6)))
            }
            'e' | 'E' => {
                let x = f64::from_bits(*v);
                let s = scientific(x.abs(), p.precision.unwrap_or(6));
                let s = if p.conversion == 'E' { s.to_uppercase() } else { s };
                signed(p, x.is_sign_negative() && !x.is_nan(), s)
            }
            'g' | 'G' | 'a' | 'A' => {
                let x = f64::from_bits(*v);
                signed(
                    p,
                    x.is_sign_negative() && !x.is_nan(),
                    general(x.abs(), p.precision.unwrap_or(6).max(1)),
                )
            }
            c => format!("%{c}"),
        };
        let n = body.chars().count();
        let pad = p.width.unwrap_or(0).saturating_sub(n);
        let zero = p.flags.contains('0') && !"sc".contains(p.conversion);
        if p.flags.contains('-') {
            out.push_str(&body);
            out.extend(std::iter::repeat_n(' ', pad));
        } else if zero {
            let (sign, digits) = match body.strip_prefix('-') {
                Some(d) => ("-", d),
                None => ("", body.as_str()),
            };
            out.push_str(sign);
            out.extend(std::iter::repeat_n('0', pad));
            out.push_str(digits);
        } else {
            out.extend(std::iter::repeat_n(' ', pad));
            out.push_str(&body);
        }
    }
    out.push_str(&rest);
    out
}

fn signed(p: &Piece, negative: bool, digits: String) -> String {
    let sign = if negative {
        "-"
    } else if p.flags.contains('+') {
        "+"
    } else if p.flags.contains(' ') {
        " "
    } else {
        ""
    };
    format!("{sign}{digits}")
}

fn float(x: f64, precision: usize) -> String {
    if x.is_nan() {
        "nan".into()
    } else if x.is_infinite() {
        "inf".into()
    } else {
        format!("{:.precision$}", x.abs())
    }
}

fn scientific(x: f64, precision: usize) -> String {
    if !x.is_finite() {
        return float(x, 0);
    }
    let s = format!("{x:.precision$e}");
    let (m, e) = s.split_once('e').unwrap_or((&s, "0"));
    let e: i32 = e.parse().unwrap_or(0);
    format!("{m}e{}{:02}", if e < 0 { '-' } else { '+' }, e.abs())
}

fn general(x: f64, precision: usize) -> String {
    if !x.is_finite() {
        return float(x, 0);
    }
    let s = scientific(x, precision - 1);
    let e: i32 = s.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let trim = |s: &str| {
        if s.contains('.') { s.trim_end_matches('0').trim_end_matches('.').to_owned() } else { s.to_owned() }
    };
    if e < -4 || e >= precision as i32 {
        let (m, tail) = s.split_once('e').unwrap_or((&s, "+00"));
        format!("{}e{tail}", trim(m))
    } else {
        trim(&format!("{x:.*}", (precision as i32 - 1 - e).max(0) as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(format: &str, values: &[u64]) -> String {
        render(format, values, |a| format!("<{a}>"))
    }

    #[test]
    fn conversions_look_like_c() {
        assert_eq!(show("i=%d x=%5.2f%%\n", &[u64::MAX, 1.5f64.to_bits()]), "i=-1 x= 1.50%\n");
        assert_eq!(show("%05d|%-5d|%+d", &[7, 7, 7]), "00007|7    |+7");
        assert_eq!(show("%x %u %lld", &[255, 0xffff_ffff, u64::MAX]), "ff 4294967295 -1");
        assert_eq!(
            show("%e %g %g", &[1234.5f64.to_bits(), 0.0001f64.to_bits(), 1e10f64.to_bits()]),
            "1.234500e+03 0.0001 1e+10"
        );
        assert_eq!(show("%s %c", &[9, 65]), "<9> A");
        assert_eq!(show("%f", &[f64::NAN.to_bits()]), "nan");
    }

    #[test]
    fn arguments_are_read_at_their_sizes() {
        let mut sizes = Vec::new();
        Pieces::new("%d %f %s %lld %c").values(&mut |n| {
            sizes.push(n);
            0
        });
        assert_eq!(sizes, [4, 8, 8, 8, 4]);
    }
}
