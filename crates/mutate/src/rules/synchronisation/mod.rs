//! Rules on what waits for what.

mod atomic_to_plain;
mod barrier_dropped;
mod barrier_early;
mod barrier_to_warp;
mod buffer_parity;
mod fence_dropped;
mod fence_scope;
mod leader_guard_dropped;
mod shared_to_local;
mod shuffle_direction;
mod shuffle_mask;
mod shuffle_offset;
mod shuffle_width;
mod volatile_dropped;
mod warp_barrier_dropped;

pub use atomic_to_plain::AtomicToPlain;
pub use barrier_dropped::BarrierDropped;
pub use barrier_early::BarrierEarly;
pub use barrier_to_warp::BarrierToWarp;
pub use buffer_parity::BufferParity;
pub use fence_dropped::FenceDropped;
pub use fence_scope::FenceScope;
pub use leader_guard_dropped::LeaderGuardDropped;
pub use shared_to_local::SharedToLocal;
pub use shuffle_direction::ShuffleDirection;
pub use shuffle_mask::ShuffleMask;
pub use shuffle_offset::ShuffleOffset;
pub use shuffle_width::ShuffleWidth;
pub use volatile_dropped::VolatileDropped;
pub use warp_barrier_dropped::WarpBarrierDropped;
