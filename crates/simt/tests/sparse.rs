//! Sparse buffers and sampled blocks: sizes beyond the host's memory, what is tracked, what cannot be sampled.

use std::sync::Arc;

use assay_simt::{
    Arg, Blocks, BufferSpec, Finding, FindingKind, Generated, Init, LaunchSpec, Loaded, Memory, Options,
    Outcome, Ptr, Role, Sanitize, Session, SessionError, Status,
};
use assay_tensor::{DType, Generator};

/// Kernels of 64 threads a block. `copy(x, y, n)`: y[i] = x[i] in 64 bits; `copy32`: the same with an index of 32 bits;
/// `narrow`: y[i mod 2^32] = x[i]; `add(x, y)`: y[thread] += x[i] atomically; `byte(x, y)`: one byte per thread at
/// y[block]; `ordered`: as `byte`, behind a fence.
const TEXT: &str = r#"
.version 8.0
.target sm_90
.address_size 64
.visible .entry copy(.param .u64 x, .param .u64 y, .param .u64 n)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<9>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.u64 %rd8, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mul.wide.u32 %rd3, %r2, %r3;
    cvt.u64.u32 %rd4, %r4;
    add.u64 %rd5, %rd3, %rd4;
    setp.ge.u64 %p1, %rd5, %rd8;
    @%p1 ret;
    shl.b64 %rd6, %rd5, 2;
    add.u64 %rd1, %rd1, %rd6;
    add.u64 %rd2, %rd2, %rd6;
    ld.global.u32 %r5, [%rd1];
    st.global.u32 [%rd2], %r5;
    ret;
}
.visible .entry copy32(.param .u64 x, .param .u64 y, .param .u64 n)
{
    .reg .b32 %r<7>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r6, %r2, %r3, %r4;
    mul.wide.s32 %rd6, %r6, 4;
    add.u64 %rd1, %rd1, %rd6;
    add.u64 %rd2, %rd2, %rd6;
    ld.global.u32 %r5, [%rd1];
    st.global.u32 [%rd2], %r5;
    ret;
}
.visible .entry narrow(.param .u64 x, .param .u64 y, .param .u64 n)
{
    .reg .b32 %r<7>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r6, %r2, %r3, %r4;
    mul.wide.u32 %rd6, %r6, 4;
    add.u64 %rd1, %rd1, %rd6;
    add.u64 %rd2, %rd2, %rd6;
    ld.global.u32 %r5, [%rd1];
    st.global.u32 [%rd2], %r5;
    ret;
}
.visible .entry add(.param .u64 x, .param .u64 y, .param .u64 n)
{
    .reg .b32 %r<6>;
    .reg .f32 %f<3>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r4, %tid.x;
    mul.wide.u32 %rd6, %r4, 4;
    add.u64 %rd1, %rd1, %rd6;
    add.u64 %rd2, %rd2, %rd6;
    ld.global.f32 %f1, [%rd1];
    red.global.add.f32 [%rd2], %f1;
    ret;
}
.visible .entry byte(.param .u64 x, .param .u64 y, .param .u64 n)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd2, [y];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r4, %tid.x;
    shr.u32 %r2, %r2, 1;
    cvt.u64.u32 %rd6, %r2;
    add.u64 %rd2, %rd2, %rd6;
    st.global.u8 [%rd2], %r4;
    ret;
}
.visible .entry ordered(.param .u64 x, .param .u64 y, .param .u64 n)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd2, [y];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r4, %tid.x;
    shr.u32 %r2, %r2, 1;
    cvt.u64.u32 %rd6, %r2;
    add.u64 %rd2, %rd2, %rd6;
    membar.gl;
    st.global.u8 [%rd2], %r4;
    ret;
}
"#;

const THREADS: u64 = 64;
const P: u64 = 9_999_991;

fn loaded() -> Arc<Loaded> {
    Arc::new(Loaded::new(&assay_ptx::parse_module(TEXT).unwrap()).unwrap())
}

fn session(options: Options) -> Session {
    Session::new(loaded(), options)
}

fn index() -> Generated {
    Generated::new(DType::F32, Generator::Index(P))
}

fn value(i: u64) -> f32 {
    (i % P + 1) as f32
}

/// A sparse input of `n` elements that tell their index, and a sparse output as long.
fn pair(s: &mut Session, n: u64) -> (Ptr, Ptr) {
    let g = index();
    let spec = |name, role, init| {
        let mut b = BufferSpec::new(name, 4 * n, role, DType::F32, init);
        b.sparse = true;
        b
    };
    let x = s.alloc(spec("x", Role::Input, Init::Generated(&g))).unwrap();
    let y = s.alloc(spec("y", Role::Output, Init::Uninit)).unwrap();
    (x, y)
}

fn launch(s: &mut Session, kernel: &str, [x, y]: [Ptr; 2], n: u64, blocks: &Blocks) -> Outcome {
    let args = [Arg::Pointer(x, 0), Arg::Pointer(y, 0), Arg::Bytes(n.to_le_bytes().to_vec())];
    s.launch(&LaunchSpec {
        kernel,
        grid: [n.div_ceil(THREADS), 1, 1],
        block: [THREADS, 1, 1],
        dynamic_shared: 0,
        args: &args,
        blocks,
    })
}

fn written(s: &Session, y: Ptr) -> Vec<(u64, f32)> {
    let all = s.written_elements(y).expect("tracked");
    all.map(|(i, b)| (i, f32::from_le_bytes(b[..4].try_into().unwrap()))).collect()
}

fn only(o: &Outcome) -> &Finding {
    assert_eq!(o.findings.len(), 1, "{:#?}", o.findings);
    &o.findings[0]
}

#[test]
fn more_than_2_to_the_32_elements_are_copied_by_sampled_blocks_and_the_boundaries_are_covered() {
    let n = (1 << 33) + 17;
    for sanitize in [Sanitize::OFF, Sanitize::ALL] {
        let mut s = session(Options { sanitize, ..Options::default() });
        let (x, y) = pair(&mut s, n);
        let o = launch(&mut s, "copy", [x, y], n, &Blocks::sample(3));
        assert_eq!(o.status, Status::Ok, "{:?} {:?}", o.reason, o.findings);
        assert_eq!(o.blocks.total, n.div_ceil(THREADS));
        assert_eq!(o.blocks.executed, o.blocks.list.len() as u64);
        assert!((20..1000).contains(&o.blocks.executed), "{}", o.blocks.executed);
        let w = written(&s, y);
        assert!(w.iter().all(|(i, v)| *v == value(*i)) && w.is_sorted_by_key(|(i, _)| *i));
        assert_eq!(w.len() as u64, (o.blocks.executed - 1) * THREADS + 17);
        let c = &o.coverage[0];
        assert_eq!((c.buffer.as_str(), c.elements, c.written), ("y", n, w.len() as u64));
        let points: Vec<_> = c.points.iter().map(|p| (p.index, p.written)).collect();
        let b = [n - 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 30) - 1, 1 << 30];
        assert_eq!(points, b.map(|i| (i, true)), "{:?}", c.points);
        assert!(s.finish().is_empty(), "coverage instead of unwritten outputs");
        assert!(s.read(y).is_empty() && s.is_sparse(y));
        let mut one = [0; 4];
        s.read_at(x, 4 * (n - 1), &mut one).unwrap();
        assert_eq!(f32::from_le_bytes(one), value(n - 1));
        assert!(matches!(s.read_at(x, 4 * n - 2, &mut one), Err(SessionError::Range { .. })));
    }
}

#[test]
fn a_signed_index_that_wraps_is_named() {
    let n = 1 << 33;
    let mut s = session(Options::default());
    let (x, y) = pair(&mut s, n);
    // Block 2^31 / 64 is the first whose index is negative.
    let o = launch(&mut s, "copy32", [x, y], n, &Blocks::List(vec![(1 << 25) - 1, 1 << 25]));
    let f = only(&o);
    assert_eq!((f.kind, f.offset_bytes), (FindingKind::OobRead, Some(-(1 << 33))));
    assert!(
        f.message.contains("element -2147483648 is exactly 2^32 below element 2147483648"),
        "{}",
        f.message
    );
    assert_eq!(f.thread.unwrap().block, [1 << 25, 0, 0]);
    assert_eq!(written(&s, y).len(), 64);
    assert_eq!(
        launch(&mut s, "copy32", [x, y], n, &Blocks::sample(0)).findings[0].kind,
        FindingKind::OobRead
    );
}

#[test]
fn an_unsigned_index_that_wraps_makes_two_blocks_meet() {
    let n = 1 << 33;
    for sanitize in [Sanitize::OFF, Sanitize::ALL] {
        let mut s = session(Options { sanitize, ..Options::default() });
        let (x, y) = pair(&mut s, n);
        let o = launch(&mut s, "narrow", [x, y], n, &Blocks::sample(0));
        assert_eq!(o.status, Status::Finding);
        let f = only(&o);
        assert_eq!((f.kind, f.buffer.as_deref()), (FindingKind::RaceGlobal, Some("y")));
        let (me, other) = (f.thread.unwrap(), f.other.clone().unwrap().thread.unwrap());
        assert_eq!(me.thread, other.thread);
        assert_eq!(me.block[0].abs_diff(other.block[0]), 1 << 26);
        if sanitize == Sanitize::OFF {
            assert!(f.message.contains("4294967296 threads of the grid apart"), "{}", f.message);
        }
        let c = &o.coverage[0];
        let at = |index| c.points.iter().find(|p| p.index == index).unwrap().written;
        assert!(at((1 << 32) - 1) && !at(1 << 32) && !at(n - 1), "{:?}", c.points);
    }
}

#[test]
fn two_executed_blocks_at_one_byte_are_a_race_unless_a_fence_may_order_them() {
    for sparse in [false, true] {
        let run = |kernel: &str, list: Vec<u64>| {
            let mut s = session(Options::default());
            let mut spec = BufferSpec::new("y", 640, Role::Output, DType::U8, Init::Uninit);
            spec.sparse = sparse;
            let y = s.alloc(spec).unwrap();
            launch(&mut s, kernel, [y, y], 640, &Blocks::List(list))
        };
        let o = run("byte", vec![0, 3, 2]);
        let f = only(&o);
        assert_eq!((f.kind, f.offset_bytes), (FindingKind::RaceGlobal, Some(1)));
        assert!(f.message.starts_with("two blocks write element 1 of `y`"), "{}", f.message);
        assert!(run("byte", vec![0, 2, 4]).findings.is_empty());
        assert!(
            run("byte", (0..10).collect()).findings.is_empty(),
            "all blocks: the race detector's business"
        );
        assert!(run("ordered", vec![0, 3, 2]).findings.is_empty());
    }
}

#[test]
fn the_order_of_a_list_changes_nothing_where_blocks_are_independent() {
    let run = |list: Vec<u64>, sparse: bool, blocks_all: bool| {
        let mut s = session(Options::default());
        let g = index();
        let mut spec = BufferSpec::new("x", 4096, Role::Input, DType::F32, Init::Generated(&g));
        spec.sparse = sparse;
        let x = s.alloc(spec).unwrap();
        spec = BufferSpec::new("y", 4096, Role::Output, DType::F32, Init::Uninit);
        spec.sparse = sparse;
        let y = s.alloc(spec).unwrap();
        let blocks = if blocks_all { Blocks::All } else { Blocks::List(list) };
        let o = launch(&mut s, "copy", [x, y], 1000, &blocks);
        let mut bytes = vec![0; 4096];
        s.read_at(y, 0, &mut bytes).unwrap();
        (bytes, s.count_written(y), o.instructions, o.findings)
    };
    let shuffled = vec![9, 2, 15, 4, 0];
    for sparse in [false, true] {
        let a = run(vec![0, 2, 4, 9, 15], sparse, false);
        assert_eq!(a, run(shuffled.clone(), sparse, false));
        assert_eq!(a, run(shuffled.clone(), !sparse, false), "sparse and dense");
        assert_eq!(a.1, Some(4 * 64 + 40));
        let all = run((0..16).rev().collect(), sparse, false);
        let grid = run(Vec::new(), sparse, true);
        assert_eq!((&all.0, &all.2, &all.3), (&grid.0, &grid.2, &grid.3));
    }
}

#[test]
fn what_a_block_that_did_not_run_should_have_written_is_not_sampleable() {
    for sparse in [false, true] {
        let mut s = session(Options::default());
        let g = index();
        let spec = |name, role, init| {
            let mut b = BufferSpec::new(name, 4096, role, DType::F32, init);
            b.sparse = sparse;
            b
        };
        let x = s.alloc(spec("x", Role::Input, Init::Generated(&g))).unwrap();
        let t = s.alloc(spec("t", Role::Scratch, Init::Uninit)).unwrap();
        let y = s.alloc(spec("y", Role::Output, Init::Uninit)).unwrap();
        let some = Blocks::List(vec![1, 3]);
        assert_eq!(launch(&mut s, "copy", [x, t], 1024, &some).status, Status::Ok);
        assert_eq!(launch(&mut s, "copy", [t, y], 1024, &some).status, Status::Ok, "the same blocks");
        for blocks in [Blocks::List(vec![3, 2]), Blocks::All] {
            let o = launch(&mut s, "copy", [t, y], 1024, &blocks);
            assert_eq!(o.status, Status::Unsupported);
            let why = o.reason.unwrap();
            assert!(why.starts_with("not sampleable: `copy` reads 4 bytes at offset"), "{why}");
            assert!(why.contains("of `t`, which no block that ran has written"), "{why}");
        }
        // Set by the host: data again. Then written in part again.
        s.memset(t, 0, 0, 4096).unwrap();
        assert_eq!(launch(&mut s, "copy", [t, y], 1024, &Blocks::List(vec![5])).status, Status::Ok);
        assert_eq!(launch(&mut s, "copy", [x, t], 1024, &Blocks::List(vec![6])).status, Status::Ok);
        assert_eq!(launch(&mut s, "copy", [t, y], 1024, &Blocks::List(vec![7])).status, Status::Unsupported);
    }
}

#[test]
fn what_is_settled_after_a_sample_is_data_and_only_what_no_block_wrote_is_given() {
    let g = index();
    let mut s = session(Options::default());
    let spec = |name, role, init| BufferSpec::new(name, 4096, role, DType::F32, init);
    let x = s.alloc(spec("x", Role::Input, Init::Generated(&g))).unwrap();
    let t = s.alloc(spec("t", Role::Scratch, Init::Uninit)).unwrap();
    let y = s.alloc(spec("y", Role::Output, Init::Uninit)).unwrap();
    assert!(s.settle(|_, _, _| panic!("nothing was left out")).is_empty());
    // Blocks of 64 elements; the last one ends at element 1000.
    let some = Blocks::List(vec![1, 2, 15]);
    assert_eq!(launch(&mut s, "copy", [x, t], 1000, &some).status, Status::Ok);
    let mut runs = Vec::new();
    let settled = s.settle(|ptr, at, bytes| {
        runs.push((ptr, at, bytes.len()));
        bytes.fill(0x11);
    });
    assert_eq!(runs, [(t, 0, 256), (t, 768, 3072), (t, 4000, 96)]);
    assert_eq!(settled, [(t, 256 + 3072 + 96)], "neither what was read nor what no launch has touched");
    // Read by all blocks, and by other ones than those that wrote.
    assert_eq!(launch(&mut s, "copy", [t, y], 1024, &Blocks::All).status, Status::Ok);
    let given = f32::from_le_bytes([0x11; 4]);
    let got: Vec<f32> =
        s.read(y).chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    for (i, v) in got.iter().enumerate() {
        let ran = (64..192).contains(&i) || (960..1000).contains(&i);
        assert_eq!(*v, if ran { value(i as u64) } else { given }, "{i}");
    }
    // A later sample begins anew: what the first one wrote is not known to be still there.
    assert_eq!(launch(&mut s, "copy", [x, t], 1000, &Blocks::List(vec![0])).status, Status::Ok);
    assert_eq!(s.settle(|_, _, bytes| bytes.fill(0)), [(t, 4096 - 256)]);
    assert!(s.settle(|_, _, _| panic!("settled already")).is_empty());
}

#[test]
fn set_memory_is_data_before_any_launch() {
    for sparse in [false, true] {
        let mut s = session(Options::default());
        let mut spec = BufferSpec::new("x", 4096, Role::Scratch, DType::F32, Init::Uninit);
        spec.sparse = sparse;
        let (x, y) =
            (s.alloc(spec).unwrap(), s.alloc(BufferSpec { name: "y", role: Role::Output, ..spec }).unwrap());
        s.memset(x, 256, 0, 256).unwrap();
        assert_eq!(launch(&mut s, "copy", [x, y], 1024, &Blocks::List(vec![1])).status, Status::Ok);
        assert_eq!(launch(&mut s, "copy", [x, y], 1024, &Blocks::List(vec![2])).status, Status::Unsupported);
        assert!(written(&s, y).iter().all(|(_, v)| *v == 0.0));
    }
}

#[test]
fn atomics_sum_over_blocks_that_did_not_run_so_the_result_says_nothing() {
    for sparse in [false, true] {
        let mut s = session(Options::default());
        let g = index();
        let mut spec = BufferSpec::new("x", 4096, Role::Input, DType::F32, Init::Generated(&g));
        spec.sparse = sparse;
        let x = s.alloc(spec).unwrap();
        let y = s.alloc(BufferSpec { name: "y", role: Role::Scratch, ..spec }).unwrap();
        let o = launch(&mut s, "add", [x, y], 1024, &Blocks::List(vec![1, 2]));
        assert_eq!((o.status, o.findings.len()), (Status::Unsupported, 0));
        assert!(o.reason.unwrap().contains("updates `y` atomically"));
        assert_eq!(written(&s, y)[5], (5, 3.0 * value(5)), "what ran did count");
        // Every block: nothing is missing.
        let mut s = session(Options::default());
        let x = s.alloc(spec).unwrap();
        let y = s.alloc(BufferSpec { name: "y", role: Role::Scratch, ..spec }).unwrap();
        assert_eq!(launch(&mut s, "add", [x, y], 1024, &Blocks::List((0..16).collect())).status, Status::Ok);
    }
}

#[test]
fn limits_of_sparse_buffers_are_errors_and_pages_count_against_the_cap() {
    let mut s = session(Options { memory_cap_bytes: 4 << 20, ..Options::default() });
    let mut spec = BufferSpec::new("y", 1 << 39, Role::Output, DType::F64, Init::Uninit);
    spec.sparse = true;
    s.alloc(spec).unwrap();
    let e = s.alloc(BufferSpec { size_bytes: (1 << 39) + 8, ..spec }).unwrap_err();
    assert!(matches!(e, SessionError::TooLarge { limit_bytes, .. } if limit_bytes == 1 << 39), "{e}");
    let g = index();
    let odd = BufferSpec { size_bytes: 10, dtype: DType::F32, init: Init::Generated(&g), ..spec };
    assert!(matches!(s.alloc(odd), Err(SessionError::ContentsSize { .. })));
    let (x, y) = pair(&mut s, 1 << 33);
    let o = launch(&mut s, "copy", [x, y], 1 << 33, &Blocks::List((0..1 << 16).collect()));
    assert_eq!(o.status, Status::Exhausted);
    assert!(o.reason.unwrap().contains("pages of sparse buffers pass the memory cap of 4194304 bytes"));
    let mut arena = session(Options { memory: Memory::Arena, ..Options::default() });
    assert!(matches!(arena.alloc(spec), Err(SessionError::SparseArena { .. })));
    let x = arena.alloc(BufferSpec { sparse: false, size_bytes: 4096, ..spec }).unwrap();
    let o = launch(&mut arena, "copy", [x, x], 128, &Blocks::List(vec![1]));
    assert_eq!(o.status, Status::Unsupported);
    assert!(o.reason.unwrap().contains("strict memory"));
}

#[test]
fn blocks_outside_the_grid_are_refused() {
    let mut s = session(Options::default());
    let (x, y) = pair(&mut s, 128);
    let o = launch(&mut s, "copy", [x, y], 128, &Blocks::List(vec![2]));
    assert_eq!(only(&o).message, "block 2 is listed, the grid has 2");
}

#[test]
fn detectors_see_sparse_buffers_byte_by_byte() {
    let mut s = session(Options { sanitize: Sanitize::ALL, ..Options::default() });
    let (x, y) = pair(&mut s, 1 << 33);
    let first = launch(&mut s, "copy", [y, x], 64, &Blocks::All);
    let kinds: Vec<_> = first.findings.iter().map(|f| (f.kind, f.count)).collect();
    assert_eq!(kinds, [(FindingKind::UninitReadGlobal, 64), (FindingKind::InputModified, 64)]);
    assert_eq!(launch(&mut s, "copy", [x, y], 640, &Blocks::All).status, Status::Ok);
    let unwritten = s.finish();
    assert_eq!((unwritten[0].kind, unwritten[0].offset_bytes), (FindingKind::UnwrittenOutput, Some(2560)));
    assert_eq!(unwritten[0].size_bytes, Some((1 << 35) - 2560));
    let o = launch(&mut s, "byte", [x, y], 640, &Blocks::All);
    let f = only(&o);
    assert_eq!(f.kind, FindingKind::RaceGlobal);
}
