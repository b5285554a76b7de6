//! Matrix products, convolutions and attention.

pub mod bmm;
pub mod conv1d;
pub mod conv2d;
pub mod conv3d;
pub mod conv_transpose1d;
pub mod conv_transpose2d;
pub mod conv_transpose3d;
pub mod einsum;
pub mod linear;
pub mod matmul;
pub mod mm;
pub mod mv;
pub mod scaled_dot_product_attention;
