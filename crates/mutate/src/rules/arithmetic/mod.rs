//! Rules on operator and constant replacements.

mod add_to_sub;
mod bitwise_confusion;
mod compound_assign_sign;
mod div_to_mul;
mod fma_sign;
mod increment_direction;
mod mod_to_div;
mod mul_to_div;
mod negation_dropped;
mod off_by_one_constant;
mod shift_direction;
mod sub_to_add;

pub use add_to_sub::AddToSub;
pub use bitwise_confusion::BitwiseConfusion;
pub use compound_assign_sign::CompoundAssignSign;
pub use div_to_mul::DivToMul;
pub use fma_sign::FmaSign;
pub use increment_direction::IncrementDirection;
pub use mod_to_div::ModToDiv;
pub use mul_to_div::MulToDiv;
pub use negation_dropped::NegationDropped;
pub use off_by_one_constant::OffByOneConstant;
pub use shift_direction::ShiftDirection;
pub use sub_to_add::SubToAdd;
