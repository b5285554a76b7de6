//! The arena: buffers laid out as a caching allocator would lay out their official sizes.
//!
//! Source of the sizes: PyTorch's CUDA caching allocator (`c10/cuda/CUDACachingAllocator`): blocks are rounded
//! to 512 bytes, blocks of at most 1 MiB come from shared segments of 2 MiB, larger ones (here: each) from
//! a segment of their own, rounded to 2 MiB. A desk-sized buffer is followed by exactly the slack that
//! rounding its official size would leave; its neighbour begins behind it, at the next multiple of 32 bytes so
//! that vector accesses stay aligned.
#![warn(clippy::arithmetic_side_effects)]

use crate::options::Role;

/// Block granularity.
const ROUND: u64 = 512;
/// Largest block of a shared segment.
const SMALL: u64 = 1 << 20;
/// Segment granularity.
const SEGMENT: u64 = 2 << 20;
/// Alignment of a buffer within its segment.
const ALIGN: u64 = 32;

/// What the layout needs to know of a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) role: Role,
    pub(crate) size_bytes: u64,
    pub(crate) official_bytes: u64,
}

/// Where a buffer came to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) segment: usize,
    pub(crate) offset: u64,
}

/// The layout of a set of buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Per request, in the order given.
    pub(crate) placed: Vec<Placed>,
    /// Size of each segment.
    pub(crate) segments: Vec<u64>,
}

/// Lays out `requests`: parameters, inputs, scratch, outputs, each in the order given. `None` on sizes that
/// overflow.
pub(crate) fn layout(requests: &[Request]) -> Option<Layout> {
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by_key(|i| requests[*i].role);
    let mut placed = vec![Placed { segment: 0, offset: 0 }; requests.len()];
    let mut segments: Vec<u64> = Vec::new();
    // The open shared segment: its number, official bytes used, end of the last desk buffer with its slack.
    let mut open: Option<(usize, u64, u64)> = None;
    for i in order {
        let r = requests[i];
        let official = r.official_bytes.max(1);
        if official <= SMALL {
            let rounded = official.checked_next_multiple_of(ROUND)?;
            let slack = rounded.checked_sub(r.official_bytes)?;
            let (segment, used, end) = match open {
                Some((s, used, end)) if used.checked_add(rounded)? <= SEGMENT => (s, used, end),
                _ => {
                    segments.push(SEGMENT);
                    (segments.len().checked_sub(1)?, 0, 0)
                }
            };
            let offset = end.checked_next_multiple_of(ALIGN)?;
            placed[i] = Placed { segment, offset };
            let end = offset.checked_add(r.size_bytes)?.checked_add(slack)?;
            let used = used.checked_add(rounded)?;
            // What the official blocks leave of the 2 MiB lies behind the last desk buffer.
            segments[segment] = end.checked_add(SEGMENT.checked_sub(used)?)?;
            open = Some((segment, used, end));
        } else {
            let slack = official.checked_next_multiple_of(SEGMENT)?.checked_sub(official)?;
            segments.push(r.size_bytes.checked_add(slack)?);
            placed[i] = Placed { segment: segments.len().checked_sub(1)?, offset: 0 };
        }
    }
    Some(Layout { placed, segments })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn r(role: Role, size_bytes: u64, official_bytes: u64) -> Request {
        Request { role, size_bytes, official_bytes }
    }

    #[test]
    fn small_buffers_share_a_segment_with_the_official_slack_between() {
        let l = layout(&[r(Role::Output, 100, 1000), r(Role::Input, 64, 512)]).unwrap();
        // The input comes first (no slack: 512 is a multiple), the output right behind it.
        assert_eq!(l.placed, [Placed { segment: 0, offset: 64 }, Placed { segment: 0, offset: 0 }]);
        // 64 + 100 + slack 24, then what is left of 2 MiB after blocks of 512 and 1024.
        assert_eq!(l.segments, [64 + 100 + 24 + SEGMENT - 512 - 1024]);
    }

    #[test]
    fn large_buffers_have_their_own_segment_and_a_whole_one_has_no_slack() {
        let l = layout(&[r(Role::Input, 4096, 64 << 20), r(Role::Output, 4096, (2 << 20) + 4)]).unwrap();
        assert_eq!(l.segments, [4096, 4096 + SEGMENT - 4]);
        assert_eq!(l.placed[1], Placed { segment: 1, offset: 0 });
    }

    #[test]
    fn a_full_segment_opens_the_next_and_overflow_is_refused() {
        let many = vec![r(Role::Scratch, 16, SMALL); 3];
        assert_eq!(layout(&many).unwrap().segments.len(), 2);
        assert_eq!(layout(&[r(Role::Scratch, u64::MAX, u64::MAX)]), None);
    }
}
