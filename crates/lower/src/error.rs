//! Why a graph is not lowered.

/// What keeps a graph from becoming a problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// An operator that the table has no row for.
    #[error("unsupported: the operator `{op}` (node `{node}`)")]
    Operator {
        /// As ATen spells it, `aten.grid_sampler_2d.default`.
        op: String,
        /// The node.
        node: String,
    },
    /// A use of an operator that its row does not cover.
    #[error("unsupported: `{op}` (node `{node}`): {what}")]
    Use {
        /// The operator.
        op: String,
        /// The node.
        node: String,
        /// What is not covered.
        what: String,
    },
    /// A graph that is none: a name that nothing defines, an impossible shape, text that does not parse.
    #[error("the graph is malformed: {0}")]
    Malformed(String),
    /// More than is taken.
    #[error("the graph is too large: {0}")]
    TooLarge(String),
}

impl Unsupported {
    /// The operator that is meant, where one is.
    pub fn operator(&self) -> Option<&str> {
        match self {
            Unsupported::Operator { op, .. } | Unsupported::Use { op, .. } => Some(op),
            Unsupported::Malformed(_) | Unsupported::TooLarge(_) => None,
        }
    }
}
