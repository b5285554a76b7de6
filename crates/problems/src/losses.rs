//! What desk extents lose, as far as shapes tell.
//!
//! Arrives: a problem's dims with both extents, the shapes of its inputs and outputs. Leaves: the dims whose cut
//! changes what a check can see, which `problem.toml` must own up to in its notes.
//!
//! A dim that stands in an input's shape and in no output's is summed, maximised or otherwise reduced away: with fewer
//! terms, one that is lost is a larger share of the result. A dim that is a multiple of a vector's or a warp's width
//! at one of the extents only has live edge guards and tails there and dead ones at the other.
//!
//! What it misses: reductions that keep their dim (a softmax, a norm, a scan), problems that do not state their
//! outputs' shapes, remainders by tiles of other sizes.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use crate::expr::Expr;
use crate::problem::{Dim, Problem};

/// Widths whose remainder decides what runs: a vector of floats, a warp.
const WIDTHS: [u64; 2] = [4, 32];

/// What is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lost {
    /// The length of a reduction.
    Reduction,
    /// Whether the extent is a multiple of this.
    MultipleOf(u64),
}

/// One dim's cut and what it loses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// The dim.
    pub dim: String,
    /// The benchmark's extent.
    pub official: u64,
    /// The extent at the desk.
    pub desk: u64,
    /// What that loses.
    pub lost: Lost,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loss { dim, official, desk, lost } = self;
        match lost {
            Lost::Reduction => write!(f, "{dim} reduces over {desk} for {official}"),
            Lost::MultipleOf(of) if desk % of == 0 => write!(f, "{dim} has no rest by {of}"),
            Lost::MultipleOf(of) => write!(f, "{dim} has a rest by {of}"),
        }
    }
}

impl Problem {
    /// What its desk extents lose: reductions first, then remainders, each in the order of the dims.
    pub fn desk_losses(&self) -> Vec<Loss> {
        let stated = self.outputs.iter().all(|o| self.output_shapes.contains_key(o));
        let read = self.dims_in(self.inputs.iter().flat_map(|i| &i.shape));
        let written = self.dims_in(self.output_shapes.values().flatten());
        let cut: Vec<&Dim> = self.dims.iter().filter(|d| d.desk != d.official).collect();
        let loss = |d: &Dim, lost| Loss { dim: d.name.clone(), official: d.official, desk: d.desk, lost };
        let mut out = Vec::new();
        for d in cut.iter().filter(|d| stated && read.contains(&d.name) && !written.contains(&d.name)) {
            out.push(loss(d, Lost::Reduction));
        }
        for d in cut {
            // An extent below the width is all remainder; the widest that differs says enough.
            let differs = |of: &&u64| d.desk > **of && (d.official % **of == 0) != (d.desk % **of == 0);
            out.extend(WIDTHS.iter().find(differs).map(|of| loss(d, Lost::MultipleOf(*of))));
        }
        out
    }

    /// The losses that the notes are silent about: they name neither the dim nor its official extent.
    pub fn unsaid_losses(&self) -> Vec<Loss> {
        let notes = self.notes.as_deref().unwrap_or("");
        let words: BTreeSet<&str> = notes.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        let said =
            |l: &Loss| words.contains(l.dim.as_str()) || words.contains(l.official.to_string().as_str());
        self.desk_losses().into_iter().filter(|l| !said(l)).collect()
    }

    /// The dims that these extents are made of, derived ones taken apart.
    fn dims_in<'e>(&self, shapes: impl Iterator<Item = &'e Expr>) -> BTreeSet<String> {
        let mut out: BTreeSet<String> =
            shapes.flat_map(|e| e.names().iter().map(|(n, _)| n.clone())).collect();
        // Each derived dim needs only earlier ones.
        for (name, e) in self.derived.iter().rev() {
            if out.remove(name) {
                out.extend(e.names().iter().map(|(n, _)| n.clone()));
            }
        }
        out
    }
}
