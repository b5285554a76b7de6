//! The devices of PyTorch's versions do what the boundary paper's Table 4 says, at its true sizes.

use assay_sweep::device::Device;
use assay_sweep::geometry::{Layout, Shape};
use assay_sweep::point::{Compare, Phase, Point};
use assay_sweep::record::Outcome::{self, Crash, Error, Ok, Truncated, Wrong};
use assay_sweep::run::in_process;
use assay_sweep::values::Kind;
use assay_tensor::DType;

const OUT: Shape = Shape { m: 256, k: 64, n: 256 };
const IN: Shape = Shape { m: 256, k: 256, n: 64 };

/// Condition (shape, layout, batch), and the outcome in 2.4.1, 2.5.1-2.8.0, 2.9.1 and 2.10.0-2.14.0, fp16.
const TABLE: [(&str, Shape, Layout, u64, [Outcome; 4]); 9] = [
    ("output beyond 2^32, contiguous", OUT, Layout::Contig, 65_537, [Ok, Ok, Ok, Ok]),
    ("output beyond 2^32, sliced", OUT, Layout::Slice, 65_537, [Ok, Ok, Ok, Ok]),
    ("output beyond 2^32, b transposed", OUT, Layout::BT, 65_537, [Ok, Wrong, Wrong, Wrong]),
    ("contiguous input beyond 2^32", IN, Layout::Contig, 65_537, [Wrong, Wrong, Wrong, Wrong]),
    ("view of 2^31", IN, Layout::AT, 32_768, [Ok, Crash, Error, Error]),
    ("view below 2^31", IN, Layout::AT, 32_767, [Ok, Ok, Ok, Ok]),
    ("view of 2^32", IN, Layout::AT, 65_536, [Truncated, Error, Error, Error]),
    ("view beyond 2^32", IN, Layout::AT, 65_537, [Truncated, Wrong, Error, Error]),
    // Up to 2.9.1 the limit of a slice applies to its storage, one batch earlier.
    ("slice one batch below 2^31", IN, Layout::Slice, 32_767, [Ok, Crash, Error, Ok]),
];

#[test]
fn every_version_behaves_as_in_table_4() {
    let groups = [
        vec!["mps-2.4.1"],
        vec!["mps-2.5.1", "mps-2.6.0", "mps-2.7.1", "mps-2.8.0"],
        vec!["mps-2.9.1"],
        vec!["mps-2.10.0", "mps-2.11.0", "mps-2.12.1", "mps-2.13.0", "mps-2.14.0"],
    ];
    for (column, names) in groups.iter().enumerate() {
        for (i, name) in names.iter().enumerate() {
            let device = Device::find(name).unwrap();
            assert_eq!(device.version, name.trim_start_matches("mps-"));
            for (what, shape, layout, batch, outcomes) in &TABLE {
                let point = Point {
                    phase: Phase::Search,
                    shape: *shape,
                    dtype: DType::F16,
                    layout: *layout,
                    kind: Kind::Random,
                    batch: *batch,
                    offset: 0,
                    seed: 0,
                    compare: Compare::Sample,
                    backward: false,
                };
                // The first of a group is run, the others are the same file.
                if i == 0 {
                    let r = in_process(&device, &point, Some(5e-3), &[1 << 31, 1 << 32]).unwrap();
                    assert_eq!(r.outcome().unwrap(), outcomes[column], "{name}: {what}");
                }
            }
        }
    }
    // 2.4.1, fp32: wrong for every layout beyond 2^32 elements of output, in the first and the last batch alone, and no hypothesis
    // reproduces the values.
    let device = Device::find("mps-2.4.1").unwrap();
    let point = Point {
        phase: Phase::Search,
        shape: OUT,
        dtype: DType::F32,
        layout: Layout::BT,
        kind: Kind::Random,
        batch: 65_537,
        offset: 0,
        seed: 0,
        compare: Compare::Sample,
        backward: false,
    };
    let r = in_process(&device, &point, Some(1e-5), &[1 << 31, 1 << 32]).unwrap();
    assert_eq!((r.cls.as_str(), r.n_batches_bad), ("wrong", 2));
    assert!(r.hyp_match.values().all(|&f| f < 0.01), "{:?}", r.hyp_match);
    assert_eq!(r.tensors["out"].bad, [[0, 0], [65_536, 65_536]]);
}
