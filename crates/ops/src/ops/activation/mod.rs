//! Activations.

pub mod elu;
pub mod gelu;
pub mod hardsigmoid;
pub mod hardswish;
pub mod hardtanh;
pub mod leaky_relu;
pub mod log_softmax;
pub mod logsigmoid;
pub mod mish;
pub mod relu;
pub mod relu6;
pub mod selu;
pub mod sigmoid;
pub mod silu;
pub mod softmax;
pub mod softplus;
pub mod softsign;
pub mod tanh;
