//! Normalisations.

pub mod batch_norm;
pub mod group_norm;
pub mod instance_norm;
pub mod layer_norm;
pub mod rms_norm;
