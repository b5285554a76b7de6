//! Input recipes: how the inputs of one evaluation are made, as a line of text that replays them.
//!
//! `KIND[(args)][*SCALE][+params][@DIM=V,…][#SEED]`, for instance `official#42`, `official*3#42`,
//! `normal(1)@M=63,N=65#7`, `outlier(0.01,1000)+params#1`. The kind makes the floating-point *inputs*; integers
//! and parameters keep their initialisers, except that `+params` adds normal noise of standard deviation 0.5 to
//! floating-point parameters. The scale multiplies floating-point inputs, never integers or parameters. `@`
//! overrides dims. Every value is a function of (seed, number of the tensor, index of the element).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::error::RecipeError;

/// The seed of a recipe that names none: the one KernelBench evaluates with.
pub const DEFAULT_SEED: u64 = 42;

/// Where a spike stands in its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    /// The first element.
    First,
    /// The middle element.
    Mid,
    /// The last element.
    Last,
}

/// What the floating-point inputs hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Each by its initialiser.
    Official,
    /// Uniform in [0, 1).
    Rand,
    /// Normal around 0 with this standard deviation.
    Normal(f64),
    /// Uniform in [lo, hi).
    Uniform(f64, f64),
    /// One value everywhere.
    Constant(f64),
    /// That many distinct values, evenly from -1 to 1, so that maxima repeat (1 level: all 1).
    Ties(u64),
    /// Standard normal, of which this fraction is multiplied by the magnitude.
    Outlier(f64, f64),
    /// Uniform in [-v, v), for what is added to small values.
    Tiny(f64),
    /// ((i mod P) + 1) / P: every element tells where it came from.
    Index(u64),
    /// Standard normal with this probability, else 0.
    Sparse(f64),
    /// Uniform in [mag/2, mag): nothing cancels.
    SameSign(f64),
    /// From -1 to 1 over the whole tensor, rising along every axis.
    Ramp,
    /// The official values times one magnitude per seed, 10^u with u uniform in [lo, hi).
    LogUniform(f64, f64),
    /// As `SameSign`, the sign alternating along the last dim.
    Alternating(f64),
    /// Uniform in [-1, 1), but the magnitude at one position of every row along a dim (the last by default).
    Spike(Position, f64, Option<u32>),
    /// Normal with this mean and standard deviation, for what cancels.
    Shifted(f64, f64),
    /// In the first floating-point input, each sample (index along the outermost dim; each row where there is one
    /// sample) takes the next of [`MIXED`], from this one on; the other inputs are standard normal.
    Mixed(u64),
}

/// What the samples of a `mixed` input hold, in turns. Each alone is a targeted recipe's; together they show many
/// faults with one input wherever samples do not share a reduction. The magnitudes stay where sums over desk extents
/// are valid at the paper's tolerance.
pub const MIXED: [Kind; 10] = [
    Kind::Uniform(-6.0, 6.0),
    Kind::Tiny(0.01),
    Kind::Uniform(-3.0, -0.5),
    Kind::Spike(Position::Last, 30.0, None),
    Kind::SameSign(300.0),
    Kind::Ties(3),
    Kind::Shifted(10.0, 0.5),
    Kind::Spike(Position::First, 30.0, None),
    Kind::Uniform(-100.0, 100.0),
    Kind::Index(251),
];

impl Kind {
    /// How large its values are (a standard deviation, or the largest), and whether all have one sign; none where the
    /// problem's initialisers decide, or a fixed range does.
    pub fn magnitude(self) -> Option<(f64, bool)> {
        match self {
            Kind::Normal(std) => Some((std.abs(), false)),
            Kind::Uniform(lo, hi) => Some((lo.abs().max(hi.abs()), lo >= 0.0 || hi <= 0.0)),
            Kind::Constant(v) => Some((v.abs(), true)),
            Kind::SameSign(mag) => Some((mag.abs(), true)),
            Kind::Shifted(mean, std) => Some((mean.abs() + 3.0 * std.abs(), mean.abs() > 4.0 * std.abs())),
            Kind::Outlier(_, mag) | Kind::Alternating(mag) | Kind::Spike(_, mag, _) => {
                Some((mag.abs(), false))
            }
            Kind::Tiny(v) => Some((v.abs(), false)),
            Kind::Official
            | Kind::Rand
            | Kind::Ties(_)
            | Kind::Index(_)
            | Kind::Sparse(_)
            | Kind::Ramp
            | Kind::LogUniform(..)
            | Kind::Mixed(_) => None,
        }
    }
}

/// A way to make the inputs of one evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// What the floating-point inputs hold.
    pub kind: Kind,
    /// Factor of the floating-point inputs.
    pub scale: f64,
    /// Whether floating-point parameters get noise on top of their initialisers.
    pub params: bool,
    /// Dims that differ from the problem's extents.
    pub dims: BTreeMap<String, u64>,
    /// The seed.
    pub seed: u64,
}

impl Recipe {
    /// The recipe of that kind with nothing else set.
    pub fn new(kind: Kind) -> Recipe {
        Recipe { kind, scale: 1.0, params: false, dims: BTreeMap::new(), seed: DEFAULT_SEED }
    }

    /// The official inputs of a seed.
    pub fn official(seed: u64) -> Recipe {
        Recipe::new(Kind::Official).with_seed(seed)
    }

    /// With another seed.
    pub fn with_seed(mut self, seed: u64) -> Recipe {
        self.seed = seed;
        self
    }

    /// With another scale.
    pub fn with_scale(mut self, scale: f64) -> Recipe {
        self.scale = scale;
        self
    }

    /// With noise on the parameters.
    pub fn with_params(mut self) -> Recipe {
        self.params = true;
        self
    }

    /// With these dims overridden.
    pub fn with_dims(mut self, dims: BTreeMap<String, u64>) -> Recipe {
        self.dims = dims;
        self
    }

    /// Reads a recipe.
    ///
    /// # Errors
    /// [`RecipeError`] with the byte offset of what is wrong.
    pub fn parse(text: &str) -> Result<Recipe, RecipeError> {
        Reader { text, i: 0 }.recipe()
    }
}

impl FromStr for Recipe {
    type Err = RecipeError;

    fn from_str(s: &str) -> Result<Self, RecipeError> {
        Recipe::parse(s)
    }
}

/// The kinds, for messages.
const NAMES: &str = "official rand normal(std) uniform(lo,hi) constant(v) ties(k) outlier(p,mag) tiny(v) index(P) \
                     sparse(p) samesign(mag) ramp loguniform(lo,hi) alternating(mag) spike(first|mid|last,mag[,dim]) \
                     shifted(mean,std) mixed(first)";

/// The names of all kinds.
pub fn kind_names() -> impl Iterator<Item = &'static str> {
    NAMES.split_whitespace().filter_map(|w| w.split('(').next())
}

struct Reader<'t> {
    text: &'t str,
    i: usize,
}

impl Reader<'_> {
    fn fail(&self, at: usize, what: impl Into<String>) -> RecipeError {
        RecipeError { text: self.text.to_owned(), at, what: what.into() }
    }

    fn rest(&self) -> &str {
        &self.text[self.i..]
    }

    fn eat(&mut self, c: char) -> bool {
        let hit = self.rest().starts_with(c);
        if hit {
            self.i += c.len_utf8();
        }
        hit
    }

    /// The text up to (not including) the first of these characters.
    fn until(&mut self, stops: &[char]) -> &str {
        let start = self.i;
        let len = self.rest().find(stops).unwrap_or(self.rest().len());
        self.i += len;
        &self.text[start..self.i]
    }

    fn recipe(mut self) -> Result<Recipe, RecipeError> {
        if self.text.len() > 1000 {
            return Err(self.fail(1000, "recipes end at 1000 bytes"));
        }
        let mut recipe = Recipe::new(self.kind()?);
        if self.eat('*') {
            let at = self.i;
            let text = self.until(&['+', '@', '#']).to_owned();
            // `1e+3` has a plus of its own.
            let text = if text.ends_with(['e', 'E'])
                && self.rest().strip_prefix('+').is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()))
            {
                self.i += 1;
                let exponent = self.until(&['+', '@', '#']).to_owned();
                format!("{text}+{exponent}")
            } else {
                text
            };
            recipe.scale = self.float(at, &text)?;
        }
        if self.eat('+') {
            let at = self.i;
            if self.until(&['@', '#']) != "params" {
                return Err(self.fail(at, "only `params` follows `+`"));
            }
            recipe.params = true;
        }
        if self.eat('@') {
            loop {
                let at = self.i;
                let name = self.until(&['=', ',', '#']).to_owned();
                let good = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                    && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                if !good || !self.eat('=') {
                    return Err(self.fail(at, "`DIM=VALUE` was expected"));
                }
                let at_value = self.i;
                let text = self.until(&[',', '#']).to_owned();
                let value = self.count(at_value, &text)?;
                if value == 0 {
                    return Err(self.fail(at_value, "an extent is at least 1"));
                }
                if recipe.dims.insert(name.clone(), value).is_some() {
                    return Err(self.fail(at, format!("`{name}` is given twice")));
                }
                if !self.eat(',') {
                    break;
                }
            }
        }
        if self.eat('#') {
            let at = self.i;
            let text = self.rest().to_owned();
            recipe.seed = self.count(at, &text)?;
            self.i = self.text.len();
        }
        if self.i < self.text.len() {
            return Err(
                self.fail(self.i, "`*SCALE`, `+params`, `@DIM=V` and `#SEED` follow the kind, in this order")
            );
        }
        Ok(recipe)
    }

    fn float(&self, at: usize, text: &str) -> Result<f64, RecipeError> {
        match text.trim().parse::<f64>() {
            Ok(v) if v.is_finite() => Ok(v),
            _ => Err(self.fail(at, format!("`{text}` is no finite number"))),
        }
    }

    fn count(&self, at: usize, text: &str) -> Result<u64, RecipeError> {
        text.trim().parse::<u64>().map_err(|_| self.fail(at, format!("`{text}` is no integer of 64 bits")))
    }

    fn kind(&mut self) -> Result<Kind, RecipeError> {
        let name = self.until(&['(', '*', '+', '@', '#']).to_owned();
        let mut args: Vec<(usize, String)> = Vec::new();
        if self.eat('(') {
            loop {
                let at = self.i;
                args.push((at, self.until(&[',', ')']).to_owned()));
                if self.eat(')') {
                    break;
                }
                if !self.eat(',') {
                    return Err(self.fail(self.i, "`)` was expected"));
                }
            }
        }
        let float = |i: usize| args.get(i).map_or(Ok(0.0), |(at, t)| self.float(*at, t));
        let count = |i: usize| args.get(i).map_or(Ok(0), |(at, t)| self.count(*at, t));
        let positive = |i: usize| match count(i)? {
            0 => Err(self.fail(args[i].0, "it is at least 1")),
            n => Ok(n),
        };
        let fraction = |i: usize| {
            let p = float(i)?;
            if (0.0..=1.0).contains(&p) {
                Ok(p)
            } else {
                Err(self.fail(args[i].0, "a fraction lies in 0..1"))
            }
        };
        Ok(match (name.as_str(), args.len()) {
            ("official", 0) => Kind::Official,
            ("rand", 0) => Kind::Rand,
            ("normal", 1) => Kind::Normal(float(0)?),
            ("uniform", 2) => Kind::Uniform(float(0)?, float(1)?),
            ("constant", 1) => Kind::Constant(float(0)?),
            ("ties", 1) => Kind::Ties(positive(0)?),
            ("outlier", 2) => Kind::Outlier(fraction(0)?, float(1)?),
            ("tiny", 1) => Kind::Tiny(float(0)?),
            ("index", 1) => Kind::Index(positive(0)?),
            ("sparse", 1) => Kind::Sparse(fraction(0)?),
            ("samesign", 1) => Kind::SameSign(float(0)?),
            ("ramp", 0) => Kind::Ramp,
            ("loguniform", 0) => Kind::LogUniform(-3.0, 3.0),
            ("loguniform", 2) => Kind::LogUniform(float(0)?, float(1)?),
            ("alternating", 1) => Kind::Alternating(float(0)?),
            ("shifted", 2) => Kind::Shifted(float(0)?, float(1)?),
            ("mixed", 1) => Kind::Mixed(count(0)?),
            ("spike", 2 | 3) => {
                let position = match args[0].1.as_str() {
                    "first" => Position::First,
                    "mid" => Position::Mid,
                    "last" => Position::Last,
                    _ => return Err(self.fail(args[0].0, "a spike stands at `first`, `mid` or `last`")),
                };
                let dim = match args.len() {
                    3 => Some(
                        u32::try_from(count(2)?).map_err(|_| self.fail(args[2].0, "there is no such dim"))?,
                    ),
                    _ => None,
                };
                Kind::Spike(position, float(1)?, dim)
            }
            (known, n) if NAMES.split_whitespace().any(|w| w.split('(').next() == Some(known)) => {
                return Err(self.fail(0, format!("`{known}` does not take {n} arguments (kinds: {NAMES})")));
            }
            _ => return Err(self.fail(0, format!("unknown kind `{name}` (kinds: {NAMES})"))),
        })
    }
}

/// A number that reads back as itself, without long runs of zeros.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.abs();
        if magnitude == 0.0 || (1e-5..1e16).contains(&magnitude) {
            write!(f, "{}", self.0)
        } else {
            write!(f, "{:e}", self.0)
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = Number;
        match *self {
            Kind::Official => f.write_str("official"),
            Kind::Rand => f.write_str("rand"),
            Kind::Normal(a) => write!(f, "normal({})", n(a)),
            Kind::Uniform(a, b) => write!(f, "uniform({},{})", n(a), n(b)),
            Kind::Constant(a) => write!(f, "constant({})", n(a)),
            Kind::Ties(k) => write!(f, "ties({k})"),
            Kind::Outlier(a, b) => write!(f, "outlier({},{})", n(a), n(b)),
            Kind::Tiny(a) => write!(f, "tiny({})", n(a)),
            Kind::Index(p) => write!(f, "index({p})"),
            Kind::Sparse(a) => write!(f, "sparse({})", n(a)),
            Kind::SameSign(a) => write!(f, "samesign({})", n(a)),
            Kind::Ramp => f.write_str("ramp"),
            Kind::LogUniform(a, b) => write!(f, "loguniform({},{})", n(a), n(b)),
            Kind::Alternating(a) => write!(f, "alternating({})", n(a)),
            Kind::Shifted(a, b) => write!(f, "shifted({},{})", n(a), n(b)),
            Kind::Mixed(k) => write!(f, "mixed({k})"),
            Kind::Spike(p, a, dim) => {
                let p = match p {
                    Position::First => "first",
                    Position::Mid => "mid",
                    Position::Last => "last",
                };
                write!(f, "spike({p},{}", n(a))?;
                if let Some(d) = dim {
                    write!(f, ",{d}")?;
                }
                f.write_str(")")
            }
        }
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if self.scale != 1.0 {
            write!(f, "*{}", Number(self.scale))?;
        }
        if self.params {
            f.write_str("+params")?;
        }
        for (i, (name, v)) in self.dims.iter().enumerate() {
            write!(f, "{}{name}={v}", if i == 0 { '@' } else { ',' })?;
        }
        write!(f, "#{}", self.seed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn recipes_in_the_docs_parse_and_print_themselves() {
        for text in [
            "official#42",
            "official*3#42",
            "official*-1#1",
            "normal(1)@M=63,N=65#7",
            "outlier(0.01,1000)+params#1",
            "spike(last,50,1)*0.5+params@B=2#18446744073709551615",
            "tiny(1e-30)#0",
            "loguniform(-3,3)#5",
            "ramp#42",
            "mixed(3)+params@B=5#7",
        ] {
            assert_eq!(Recipe::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Recipe::parse("official").unwrap(), Recipe::official(DEFAULT_SEED));
        assert_eq!(Recipe::parse("official*1e+3+params").unwrap().scale, 1000.0);
        assert_eq!(Recipe::parse("loguniform").unwrap().kind, Kind::LogUniform(-3.0, 3.0));
    }

    #[test]
    fn what_is_no_recipe_says_where() {
        for (text, at, what) in [
            ("", 0, "unknown kind"),
            ("offical#1", 0, "unknown kind `offical`"),
            ("normal#1", 0, "does not take 0"),
            ("normal(1", 8, "`)`"),
            ("normal(x)#1", 7, "`x`"),
            ("normal(1)*inf", 10, "finite"),
            ("normal(1)+param", 10, "params"),
            ("normal(1)@M=0", 12, "at least 1"),
            ("normal(1)@M=1,M=2", 14, "twice"),
            ("normal(1)@=1", 10, "DIM=VALUE"),
            ("normal(1)#x", 10, "`x`"),
            ("normal(1)#1@M=2", 10, "64 bits"),
            ("ties(0)", 5, "at least 1"),
            ("outlier(2,1)", 8, "0..1"),
            ("spike(top,1)", 6, "first"),
            ("official*1e", 9, "finite"),
            ("official*1e+", 9, "finite"),
            ("é", 0, "unknown"),
        ] {
            let e = Recipe::parse(text).unwrap_err();
            assert_eq!(e.at, at, "{e}");
            assert!(e.what.contains(what), "{e}");
        }
    }

    fn number() -> impl Strategy<Value = f64> {
        prop_oneof![any::<f64>().prop_filter("finite", |v| v.is_finite()), -1000.0..1000.0f64, Just(1.0)]
    }

    fn kind() -> impl Strategy<Value = Kind> {
        let position = prop_oneof![Just(Position::First), Just(Position::Mid), Just(Position::Last)];
        prop_oneof![
            Just(Kind::Official),
            Just(Kind::Rand),
            Just(Kind::Ramp),
            number().prop_map(Kind::Normal),
            number().prop_map(Kind::Constant),
            number().prop_map(Kind::Tiny),
            number().prop_map(Kind::SameSign),
            number().prop_map(Kind::Alternating),
            (number(), number()).prop_map(|(a, b)| Kind::Uniform(a, b)),
            (number(), number()).prop_map(|(a, b)| Kind::LogUniform(a, b)),
            (number(), number()).prop_map(|(a, b)| Kind::Shifted(a, b)),
            (0.0..=1.0f64, number()).prop_map(|(a, b)| Kind::Outlier(a, b)),
            (0.0..=1.0f64).prop_map(Kind::Sparse),
            (1..=u64::MAX).prop_map(Kind::Ties),
            (1..=u64::MAX).prop_map(Kind::Index),
            any::<u64>().prop_map(Kind::Mixed),
            (position, number(), proptest::option::of(any::<u32>()))
                .prop_map(|(p, a, d)| Kind::Spike(p, a, d)),
        ]
    }

    proptest! {
        #[test]
        fn every_recipe_reads_back_as_itself(
            kind in kind(),
            scale in number(),
            params: bool,
            dims in proptest::collection::btree_map("[A-Z_][A-Za-z0-9_]{0,6}", 1..=u64::MAX, 0..4),
            seed: u64,
        ) {
            let recipe = Recipe { kind, scale, params, dims, seed };
            prop_assert_eq!(Recipe::parse(&recipe.to_string()).unwrap(), recipe);
        }

        #[test]
        fn any_text_parses_or_fails_within_itself(text in "[a-z(),.*+@#=0-9é-]{0,30}") {
            if let Err(e) = Recipe::parse(&text) {
                prop_assert!(e.at <= text.len());
            }
        }
    }
}
