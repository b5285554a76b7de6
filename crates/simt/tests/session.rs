//! Sessions: allocation, fills, launches that are refused, several launches.

use std::sync::Arc;

use assay_simt::{
    Arg, Blocks, BufferSpec, Fill, FindingKind, Init, LaunchSpec, LoadError, Loaded, Memory, Options,
    Outcome, Ptr, Role, Session, SessionError, Status,
};
use assay_tensor::DType;

/// `copy(x, y, n)`: y[i] = x[i]; `bad` uses something that the device lacks.
const TEXT: &str = r#"
.version 8.0
.target sm_90
.address_size 64
.visible .entry copy(.param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<6>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 ret;
    mul.wide.u32 %rd3, %r5, 4;
    add.u64 %rd4, %rd1, %rd3;
    add.u64 %rd5, %rd2, %rd3;
    ld.global.u32 %r4, [%rd4];
    st.global.u32 [%rd5], %r4;
    ret;
}
.visible .entry bad(.param .u64 x)
{
    barrier.cluster.arrive.aligned;
    ret;
}
"#;

fn loaded() -> Arc<Loaded> {
    Arc::new(Loaded::new(&assay_ptx::parse_module(TEXT).unwrap()).unwrap())
}

fn copy(s: &mut Session, x: Ptr, y: Ptr, n: u32) -> Outcome {
    let args = [Arg::Pointer(x, 0), Arg::Pointer(y, 0), Arg::Bytes(n.to_le_bytes().to_vec())];
    s.launch(&LaunchSpec {
        kernel: "copy",
        grid: [4, 1, 1],
        block: [64, 1, 1],
        dynamic_shared: 0,
        args: &args,
        blocks: &Blocks::All,
    })
}

fn floats(b: &[u8]) -> Vec<f32> {
    b.as_chunks::<4>().0.iter().map(|c| f32::from_le_bytes(*c)).collect()
}

#[test]
fn a_loaded_module_is_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Loaded>();
}

#[test]
fn one_unsupported_kernel_does_not_take_the_others_down() {
    let l = loaded();
    assert_eq!(l.kernels().collect::<Vec<_>>(), ["bad", "copy"]);
    assert!(l.check("copy").is_ok());
    let e = l.check("bad").unwrap_err();
    assert!(
        matches!(&e, LoadError::Unsupported { spelling, .. } if spelling == "barrier.cluster.arrive.aligned"),
        "{e}"
    );
    assert!(matches!(l.check("none"), Err(LoadError::UnknownKernel { .. })));
    let mut s = Session::new(l, Options::default());
    let x = s.alloc(BufferSpec::new("x", 4, Role::Input, DType::F32, Init::Uninit)).unwrap();
    let args = [Arg::Pointer(x, 0)];
    let spec = LaunchSpec {
        kernel: "bad",
        grid: [1; 3],
        block: [1; 3],
        dynamic_shared: 0,
        args: &args,
        blocks: &Blocks::All,
    };
    assert_eq!(s.launch(&spec).status, Status::Unsupported);
    let unknown = s.launch(&LaunchSpec { kernel: "none", ..spec });
    assert_eq!(unknown.findings[0].kind, FindingKind::InvalidLaunch);
    let few = s.launch(&LaunchSpec { kernel: "copy", ..spec });
    assert!(few.findings[0].message.contains("takes 3 arguments, got 1"), "{}", few.findings[0].message);
}

#[test]
fn launches_follow_each_other_on_the_same_buffers() {
    for memory in [Memory::Strict, Memory::Arena] {
        let mut s = Session::new(loaded(), Options { memory, ..Options::default() });
        let data: Vec<u8> = (0..200u32).flat_map(u32::to_le_bytes).collect();
        let x = s.alloc(BufferSpec::new("x", 800, Role::Input, DType::I32, Init::Bytes(&data))).unwrap();
        let t = s.alloc(BufferSpec::new("t", 800, Role::Scratch, DType::I32, Init::Uninit)).unwrap();
        let y = s.alloc(BufferSpec::new("y", 800, Role::Output, DType::I32, Init::Uninit)).unwrap();
        assert_eq!(copy(&mut s, x, t, 200).status, Status::Ok);
        assert_eq!(copy(&mut s, t, y, 199).status, Status::Ok);
        assert_eq!(s.read(y)[..796], data[..796]);
        s.memset(y, 4, 0xee, 8).unwrap();
        assert_eq!(s.read(y)[..16], [0, 0, 0, 0, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 3, 0, 0, 0]);
        assert!(matches!(s.memset(y, 796, 0, 5), Err(SessionError::Range { .. })));
        assert!(matches!(s.memset(y, -1, 0, 1), Err(SessionError::Range { .. })));
        assert!(s.instructions() > 0);
    }
}

#[test]
fn fresh_memory_follows_the_fill_and_its_seed() {
    let fresh = |fill, fill_seed| {
        let mut s = Session::new(loaded(), Options { fill, fill_seed, ..Options::default() });
        let old: Vec<u8> = [5f32; 8].iter().flat_map(|v| v.to_le_bytes()).collect();
        let x = s.alloc(BufferSpec::new("x", 64, Role::Scratch, DType::F32, Init::Previous(&old))).unwrap();
        let y = s.alloc(BufferSpec::new("y", 64, Role::Output, DType::F32, Init::Uninit)).unwrap();
        copy(&mut s, x, y, 16);
        floats(s.read(y))
    };
    assert!(fresh(Fill::Zeros, 0).iter().all(|v| *v == 0.0));
    assert!(fresh(Fill::Nan, 0).iter().all(|v| v.is_nan()));
    let noise = fresh(Fill::Noise, 1);
    assert!(noise.iter().all(|v| v.abs() <= 1.0) && noise.iter().any(|v| *v != 0.0));
    assert_eq!(noise, fresh(Fill::Noise, 1));
    assert_ne!(noise, fresh(Fill::Noise, 2));
    let previous = fresh(Fill::Previous, 1);
    assert!(previous[..8].iter().all(|v| *v == 5.0) && previous[8..] == noise[8..]);
}

#[test]
fn limits_of_memory_and_contents_are_errors() {
    let mut s = Session::new(loaded(), Options { memory_cap_bytes: 1 << 20, ..Options::default() });
    let spec = |size, init| BufferSpec::new("x", size, Role::Input, DType::F32, init);
    assert!(matches!(s.alloc(spec(2 << 20, Init::Uninit)), Err(SessionError::OutOfMemory { .. })));
    assert!(matches!(s.alloc(spec(u64::MAX, Init::Uninit)), Err(SessionError::OutOfMemory { .. })));
    assert!(matches!(s.alloc(spec(8, Init::Bytes(&[0; 4]))), Err(SessionError::ContentsSize { .. })));
    let mut arena = Session::new(loaded(), Options { memory: Memory::Arena, ..Options::default() });
    let x = arena.alloc(spec(64, Init::Uninit)).unwrap();
    copy(&mut arena, x, x, 1);
    assert!(matches!(arena.alloc(spec(64, Init::Uninit)), Err(SessionError::AfterLaunch { .. })));
}

#[test]
fn a_budget_counts_over_all_launches() {
    let mut s = Session::new(loaded(), Options { instruction_budget: 250, ..Options::default() });
    let x = s.alloc(BufferSpec::new("x", 1024, Role::Scratch, DType::F32, Init::Uninit)).unwrap();
    let y = s.alloc(BufferSpec::new("y", 1024, Role::Output, DType::F32, Init::Uninit)).unwrap();
    let first = copy(&mut s, x, y, 256);
    assert_eq!((first.status, first.instructions), (Status::Ok, s.instructions()));
    let second = copy(&mut s, x, y, 256);
    assert_eq!(second.status, Status::Exhausted);
    assert!(second.reason.unwrap().contains("250"));
}

#[test]
fn a_grid_without_end_of_empty_blocks_is_exhausted() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n";
    let loaded = Arc::new(Loaded::new(&assay_ptx::parse_module(text).unwrap()).unwrap());
    let mut s = Session::new(loaded, Options { instruction_budget: 1_000_000, ..Options::default() });
    let most = LaunchSpec {
        kernel: "k",
        grid: [(1 << 31) - 1, 65_535, 65_535],
        block: [1; 3],
        dynamic_shared: 0,
        args: &[],
        blocks: &Blocks::All,
    };
    let outcome = s.launch(&most);
    assert_eq!(outcome.status, Status::Exhausted);
    assert!(outcome.instructions < 1_000_000, "{}", outcome.instructions);
}

#[test]
fn kernels_of_several_modules_run_as_one_unless_they_touch_a_variable() {
    let counting = TEXT.replace(
        ".visible .entry bad",
        ".global .align 4 .u32 count;\n.visible .entry counts()\n{\n.reg .b32 %r<2>;\nld.global.u32 %r1, [count];\nret;\n}\n\
         .visible .entry bad",
    );
    let counting = Loaded::new(&assay_ptx::parse_module(&counting).unwrap()).unwrap();
    let other = TEXT.replace("entry copy", "entry also");
    let other = Loaded::new(&assay_ptx::parse_module(&other).unwrap()).unwrap();
    let gathered = Loaded::gathered([(&*loaded(), "copy"), (&other, "also")]).unwrap();
    assert!(gathered.kernels().eq(["also", "copy"]));
    let mut s = Session::new(Arc::new(gathered), Options::default());
    let bytes: Vec<u8> = (0..256u32).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let spec = |name, init| BufferSpec {
        name,
        size_bytes: 1024,
        official_bytes: 1024,
        role: Role::Input,
        dtype: DType::F32,
        init,
        may_write: true,
        sparse: false,
        shape: &[],
    };
    let x = s.alloc(spec("x", Init::Bytes(&bytes))).unwrap();
    let y = s.alloc(spec("y", Init::Uninit)).unwrap();
    assert_eq!(copy(&mut s, x, y, 256).status, Status::Ok);
    assert_eq!(s.read(y), bytes);
    // The variable is there, but this kernel does not name it.
    assert!(Loaded::gathered([(&counting, "copy"), (&other, "also")]).is_some());
    for refused in ["counts", "bad", "absent"] {
        assert!(Loaded::gathered([(&counting, refused)]).is_none(), "{refused}");
    }
    assert!(
        Loaded::gathered([(&counting, "copy"), (&*loaded(), "copy")]).is_none(),
        "one name for two kernels"
    );
}
