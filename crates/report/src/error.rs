//! Errors of this crate.

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The page's template and the data do not fit: a bug of ours.
    #[error("the report's template failed: {0}")]
    Template(#[from] minijinja::Error),
    /// The data cannot be written as JSON: a bug of ours.
    #[error("the report's data cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}
