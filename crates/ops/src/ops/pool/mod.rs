//! Pooling.

pub mod adaptive_avg_pool1d;
pub mod adaptive_avg_pool2d;
pub mod adaptive_avg_pool3d;
pub mod avg_pool1d;
pub mod avg_pool2d;
pub mod avg_pool3d;
pub mod max_pool1d;
pub mod max_pool2d;
pub mod max_pool3d;
