//! Expressions over dims: integers for shapes, reals for the bounds of initialisers.
//!
//! Grammar: numbers, names, `+ - * / %`, parentheses, `min(a, b)`, `max(a, b)`, and for reals `sqrt(a)`. In
//! integer expressions `/` is floor division and `%` its remainder (the sign of the divisor), every step is
//! checked, and a fraction or `sqrt` is refused when the expression is read.

use std::collections::BTreeMap;

/// Operators and parentheses within one another.
const MAX_DEPTH: usize = 64;
/// Bytes of one expression.
const MAX_LEN: usize = 512;

/// Why an expression cannot be read: a byte offset and a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError {
    /// Byte offset into the text.
    pub at: usize,
    /// What is wrong there.
    pub what: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Int(i128),
    Real(f64),
    Name(String),
    Neg(Box<Node>),
    Binary(u8, Box<Node>, Box<Node>),
    Min(Box<Node>, Box<Node>),
    Max(Box<Node>, Box<Node>),
    Sqrt(Box<Node>),
}

/// An expression, with its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    text: String,
    node: Node,
    /// Names with the byte offset of their first use.
    names: Vec<(String, usize)>,
}

impl std::fmt::Display for Expr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl Expr {
    /// Reads an integer expression.
    ///
    /// # Errors
    /// `ExprError` at the first character that does not fit.
    pub fn integer(text: &str) -> Result<Expr, ExprError> {
        Self::read(text, false)
    }

    /// Reads a real expression.
    ///
    /// # Errors
    /// `ExprError` at the first character that does not fit.
    pub fn real(text: &str) -> Result<Expr, ExprError> {
        Self::read(text, true)
    }

    /// A constant.
    pub fn constant(v: u64) -> Expr {
        Expr { text: v.to_string(), node: Node::Int(i128::from(v)), names: Vec::new() }
    }

    fn read(text: &str, real: bool) -> Result<Expr, ExprError> {
        if text.len() > MAX_LEN {
            return Err(ExprError { at: MAX_LEN, what: format!("expressions end at {MAX_LEN} bytes") });
        }
        let mut p = Reader { text, i: 0, real, depth: 0, names: Vec::new() };
        let node = p.sum()?;
        p.blanks();
        if p.i < text.len() {
            return Err(p.fail("an operator was expected"));
        }
        Ok(Expr { text: text.trim().to_owned(), node, names: p.names })
    }

    /// The names it reads, each with the byte offset of its first use.
    pub fn names(&self) -> &[(String, usize)] {
        &self.names
    }

    /// Its integer value.
    ///
    /// # Errors
    /// A message for an unknown name, a division by zero, or a value beyond 64 bits.
    pub fn integer_value(&self, dims: &BTreeMap<String, u64>) -> Result<i64, String> {
        integer(&self.node, dims).and_then(|v| i64::try_from(v).map_err(|_| overflow()))
    }

    /// Its value as a size, which is not negative.
    ///
    /// # Errors
    /// As [`Expr::integer_value`]; and for a negative value.
    pub fn size(&self, dims: &BTreeMap<String, u64>) -> Result<u64, String> {
        let v = self.integer_value(dims)?;
        u64::try_from(v).map_err(|_| format!("it is {v}, and sizes are not negative"))
    }

    /// Its real value.
    ///
    /// # Errors
    /// A message for an unknown name or a value that is not finite.
    pub fn real_value(&self, dims: &BTreeMap<String, u64>) -> Result<f64, String> {
        let v = real(&self.node, dims)?;
        if v.is_finite() { Ok(v) } else { Err("it is not finite".to_owned()) }
    }
}

fn overflow() -> String {
    "it does not fit in 63 bits".to_owned()
}

fn lookup(name: &str, dims: &BTreeMap<String, u64>) -> Result<u64, String> {
    dims.get(name).copied().ok_or_else(|| format!("`{name}` is no dim"))
}

fn integer(n: &Node, dims: &BTreeMap<String, u64>) -> Result<i128, String> {
    let v = match n {
        Node::Int(v) => *v,
        Node::Real(_) | Node::Sqrt(_) => return Err("it is no integer".to_owned()),
        Node::Name(name) => i128::from(lookup(name, dims)?),
        Node::Neg(a) => -integer(a, dims)?,
        Node::Min(a, b) => integer(a, dims)?.min(integer(b, dims)?),
        Node::Max(a, b) => integer(a, dims)?.max(integer(b, dims)?),
        Node::Binary(op, a, b) => {
            let (a, b) = (integer(a, dims)?, integer(b, dims)?);
            match op {
                b'+' => a + b,
                b'-' => a - b,
                b'*' => a.checked_mul(b).ok_or_else(overflow)?,
                _ if b == 0 => return Err("it divides by zero".to_owned()),
                b'/' => a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0),
                _ => {
                    let r = a.rem_euclid(b);
                    if b < 0 && r != 0 { r + b } else { r }
                }
            }
        }
    };
    // Each step stays within 2^64, so the next sum cannot overflow 128 bits.
    if v.unsigned_abs() > 1 << 64 { Err(overflow()) } else { Ok(v) }
}

fn real(n: &Node, dims: &BTreeMap<String, u64>) -> Result<f64, String> {
    Ok(match n {
        Node::Int(v) => *v as f64,
        Node::Real(v) => *v,
        Node::Name(name) => lookup(name, dims)? as f64,
        Node::Neg(a) => -real(a, dims)?,
        Node::Sqrt(a) => libm::sqrt(real(a, dims)?),
        Node::Min(a, b) => real(a, dims)?.min(real(b, dims)?),
        Node::Max(a, b) => real(a, dims)?.max(real(b, dims)?),
        Node::Binary(op, a, b) => {
            let (a, b) = (real(a, dims)?, real(b, dims)?);
            match op {
                b'+' => a + b,
                b'-' => a - b,
                b'*' => a * b,
                b'/' => a / b,
                _ => a - b * libm::floor(a / b),
            }
        }
    })
}

struct Reader<'t> {
    text: &'t str,
    i: usize,
    real: bool,
    depth: usize,
    names: Vec<(String, usize)>,
}

impl Reader<'_> {
    fn fail(&self, what: impl Into<String>) -> ExprError {
        ExprError { at: self.i, what: what.into() }
    }

    fn blanks(&mut self) {
        while self.byte().is_some_and(|b| b.is_ascii_whitespace()) {
            self.i += 1;
        }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.i).copied()
    }

    fn sum(&mut self) -> Result<Node, ExprError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.fail("it is nested too deep"));
        }
        let mut left = self.product()?;
        let mut terms = 0;
        loop {
            self.blanks();
            let Some(op @ (b'+' | b'-')) = self.byte() else { break };
            self.i += 1;
            left = Node::Binary(op, Box::new(left), Box::new(self.product()?));
            terms += 1;
            if terms > MAX_DEPTH {
                return Err(self.fail("it has too many terms"));
            }
        }
        self.depth -= 1;
        Ok(left)
    }

    fn product(&mut self) -> Result<Node, ExprError> {
        let mut left = self.unary()?;
        let mut factors = 0;
        loop {
            self.blanks();
            let Some(op @ (b'*' | b'/' | b'%')) = self.byte() else { return Ok(left) };
            self.i += 1;
            left = Node::Binary(op, Box::new(left), Box::new(self.unary()?));
            factors += 1;
            if factors > MAX_DEPTH {
                return Err(self.fail("it has too many factors"));
            }
        }
    }

    fn unary(&mut self) -> Result<Node, ExprError> {
        self.blanks();
        let start = self.i;
        match self.byte() {
            Some(b'-') => {
                self.i += 1;
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(self.fail("it is nested too deep"));
                }
                let inner = self.unary()?;
                self.depth -= 1;
                Ok(Node::Neg(Box::new(inner)))
            }
            Some(b'(') => {
                self.i += 1;
                let inner = self.sum()?;
                self.close()?;
                Ok(inner)
            }
            Some(b) if b.is_ascii_digit() || b == b'.' => self.number(),
            Some(b) if b.is_ascii_alphabetic() || b == b'_' => {
                while self.byte().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_') {
                    self.i += 1;
                }
                let name = &self.text[start..self.i];
                self.blanks();
                if self.byte() == Some(b'(') {
                    let name = name.to_owned();
                    return self.function(&name, start);
                }
                if !self.names.iter().any(|(n, _)| n == name) {
                    self.names.push((name.to_owned(), start));
                }
                Ok(Node::Name(name.to_owned()))
            }
            Some(_) => Err(self.fail("a number, a name or `(` was expected")),
            None => Err(self.fail("the expression ends too early")),
        }
    }

    fn close(&mut self) -> Result<(), ExprError> {
        self.blanks();
        if self.byte() == Some(b')') {
            self.i += 1;
            return Ok(());
        }
        Err(self.fail("`)` was expected"))
    }

    fn function(&mut self, name: &str, start: usize) -> Result<Node, ExprError> {
        self.i += 1;
        let a = Box::new(self.sum()?);
        match name {
            "sqrt" if self.real => {
                self.close()?;
                Ok(Node::Sqrt(a))
            }
            "min" | "max" => {
                self.blanks();
                if self.byte() != Some(b',') {
                    return Err(self.fail("`,` was expected"));
                }
                self.i += 1;
                let b = Box::new(self.sum()?);
                self.close()?;
                Ok(if name == "min" { Node::Min(a, b) } else { Node::Max(a, b) })
            }
            _ => Err(ExprError { at: start, what: format!("there is no function `{name}` here") }),
        }
    }

    fn number(&mut self) -> Result<Node, ExprError> {
        let start = self.i;
        while let Some(b) = self.byte() {
            let sign = matches!(b, b'+' | b'-')
                && matches!(self.text.as_bytes()[self.i - 1], b'e' | b'E')
                && self.i > start;
            if !(b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E') || sign) {
                break;
            }
            self.i += 1;
        }
        let text = &self.text[start..self.i];
        let fail = |what: &str| ExprError { at: start, what: what.to_owned() };
        if let Ok(v) = text.parse::<u64>() {
            return Ok(Node::Int(i128::from(v)));
        }
        if text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(fail("the number does not fit in 64 bits"));
        }
        if !self.real {
            return Err(fail("an integer was expected"));
        }
        match text.parse::<f64>() {
            Ok(v) if v.is_finite() => Ok(Node::Real(v)),
            _ => Err(fail("this is no number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims() -> BTreeMap<String, u64> {
        BTreeMap::from([("H".to_owned(), 64), ("K".to_owned(), 3), ("big".to_owned(), 1 << 62)])
    }

    #[test]
    fn integer_expressions_have_floor_division_and_precedence() {
        for (text, want) in [
            ("H + 2*1 - K + 1", 64),
            ("(H - K) / 2 + 1", 31),
            ("-7 / 2", -4),
            ("-7 % 3", 2),
            ("7 / -2", -4),
            ("7 % -3", -2),
            ("-6 / -3", 2),
            ("min(H, max(K, 10)) * 2", 20),
            ("H%5+1", 5),
        ] {
            assert_eq!(Expr::integer(text).unwrap().integer_value(&dims()), Ok(want), "{text}");
        }
    }

    #[test]
    fn what_has_no_value_says_why() {
        for (text, why) in [
            ("H / (K - 3)", "divides by zero"),
            ("big * 4", "fit"),
            ("big * big", "fit"),
            ("big*big*big*big*big*big", "fit"),
            ("W", "`W` is no dim"),
        ] {
            assert!(Expr::integer(text).unwrap().integer_value(&dims()).unwrap_err().contains(why), "{text}");
        }
        assert!(Expr::integer("K - H").unwrap().size(&dims()).unwrap_err().contains("-61"));
    }

    #[test]
    fn what_does_not_parse_points_at_the_character() {
        let deep = "(".repeat(100);
        for (text, at) in [
            ("H + ", 4),
            ("H + * K", 4),
            ("H K", 2),
            ("1.5", 0),
            ("sqrt(H)", 0),
            ("99999999999999999999", 0),
            ("min(H)", 5),
            ("é", 0),
            (deep.as_str(), 64),
        ] {
            assert_eq!(Expr::integer(text).unwrap_err().at, at, "{text}");
        }
        assert!(Expr::integer(&"-".repeat(600)).is_err());
        assert!(Expr::integer(&"-".repeat(200)).is_err());
    }

    #[test]
    fn real_expressions_give_initialiser_bounds() {
        let e = Expr::real("-1/sqrt(H*K*K)").unwrap();
        assert_eq!(e.real_value(&dims()), Ok(-1.0 / 576f64.sqrt()));
        assert_eq!(Expr::real("1e-3 * 2").unwrap().real_value(&dims()), Ok(0.002));
        assert!(Expr::real("1/(H-H)").unwrap().real_value(&dims()).is_err());
    }
}
