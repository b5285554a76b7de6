//! Rules on indices, offsets, counts and extents that a large tensor outgrows.

mod byte_offset_wrapped;
mod cast_narrowed;
mod count_argument_int;
mod count_parameter_int;
mod grid_extent_truncated;
mod guard_narrowed;
mod index_declared_int;
mod index_declared_unsigned;
mod index_through_float;
mod index_wrapped;
mod late_widening;
mod loop_counter_narrowed;
mod offset_narrowed;
mod reduction_index_short;
mod shared;
mod storage_offset_dropped;
mod strides_ignored;
mod wide_cast_dropped;

pub use byte_offset_wrapped::ByteOffsetWrapped;
pub use cast_narrowed::CastNarrowed;
pub use count_argument_int::CountArgumentInt;
pub use count_parameter_int::CountParameterInt;
pub use grid_extent_truncated::GridExtentTruncated;
pub use guard_narrowed::GuardNarrowed;
pub use index_declared_int::IndexDeclaredInt;
pub use index_declared_unsigned::IndexDeclaredUnsigned;
pub use index_through_float::IndexThroughFloat;
pub use index_wrapped::IndexWrapped;
pub use late_widening::LateWidening;
pub use loop_counter_narrowed::LoopCounterNarrowed;
pub use offset_narrowed::OffsetNarrowed;
pub use reduction_index_short::ReductionIndexShort;
pub use storage_offset_dropped::StorageOffsetDropped;
pub use strides_ignored::StridesIgnored;
pub use wide_cast_dropped::WideCastDropped;
