//! The loops that operators share. Every one is generic over precision, keeps the stated accumulation order per
//! output element, and vectorises across output elements only.

pub mod conv;
pub mod elementwise;
pub mod gemm;
pub mod moments;
pub mod pool;
pub mod reduce;
pub mod scan;
pub mod softmax;
