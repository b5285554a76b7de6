//! assay-campaign
