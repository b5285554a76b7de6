//! The ISA table.

macro_rules! isa {
    ($($variant:ident $text:literal,)*) => {
        /// Opcodes. Source: PTX ISA, "Instructions".
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Op { $(#[doc = concat!("`", $text, "`.")] $variant,)* }

        impl Op {
            /// All opcodes, in the table's order.
            pub const ALL: &'static [Op] = &[$(Op::$variant,)*];

            /// The mnemonic, such as `bar.sync`.
            pub fn name(self) -> &'static str {
                match self { $(Op::$variant => $text,)* }
            }
        }
    };
}

isa! {
    Abs "abs", Activemask "activemask", Add "add", Addc "addc", And "and", Atom "atom",
    BarArrive "bar.arrive", BarRed "bar.red", BarSync "bar.sync", BarWarpSync "bar.warp.sync",
    BarrierClusterArrive "barrier.cluster.arrive", BarrierClusterWait "barrier.cluster.wait",
    Bfe "bfe", Bfi "bfi", Bfind "bfind", Bmsk "bmsk", Bra "bra", Brev "brev", Brkpt "brkpt",
    BrxIdx "brx.idx", Call "call", Clz "clz", Cnot "cnot", Copysign "copysign", Cos "cos",
    CpAsync "cp.async", CpAsyncCommitGroup "cp.async.commit_group", CpAsyncWaitAll "cp.async.wait_all",
    CpAsyncWaitGroup "cp.async.wait_group", Cvt "cvt", Cvta "cvta", Discard "discard", Div "div",
    Dp2a "dp2a", Dp4a "dp4a", ElectSync "elect.sync", Ex2 "ex2", Exit "exit", Fence "fence", Fma "fma",
    Fns "fns", Getctarank "getctarank", Griddepcontrol "griddepcontrol", Isspacep "isspacep", Ld "ld",
    Ldmatrix "ldmatrix", Ldu "ldu", Lg2 "lg2", Lop3 "lop3", Mad "mad", Mad24 "mad24", Madc "madc",
    Mapa "mapa", Match "match", Max "max", Membar "membar", Min "min", Mma "mma", Mov "mov",
    Movmatrix "movmatrix", Mul "mul", Mul24 "mul24", Nanosleep "nanosleep", Neg "neg", Not "not", Or "or",
    Popc "popc", Prefetch "prefetch", Prefetchu "prefetchu", Prmt "prmt", Rcp "rcp", Red "red",
    Redux "redux", Rem "rem", Ret "ret", Rsqrt "rsqrt", Sad "sad", Selp "selp", Set "set", Setp "setp",
    Shf "shf", Shfl "shfl", Shl "shl", Shr "shr", Sin "sin", Slct "slct", Sqrt "sqrt", St "st",
    Stmatrix "stmatrix", Sub "sub", Subc "subc", Szext "szext", Tanh "tanh", Testp "testp", Trap "trap",
    Vabsdiff4 "vabsdiff4", Vote "vote", WmmaLoad "wmma.load", WmmaMma "wmma.mma", WmmaStore "wmma.store",
    Xor "xor",
}
