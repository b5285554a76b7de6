//! assay-report
