//! Reductions and scans.

pub mod amax;
pub mod amin;
pub mod argmax;
pub mod argmin;
pub mod cumprod;
pub mod cumsum;
pub mod logsumexp;
pub mod max;
pub mod mean;
pub mod min;
pub mod norm;
pub mod prod;
pub mod std;
pub mod sum;
pub mod var;
