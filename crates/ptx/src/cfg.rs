//! Basic blocks and immediate post-dominators of a function.
//!
//! Post-dominators by the iterative algorithm of Cooper, Harvey and Kennedy, "A Simple, Fast
//! Dominance Algorithm" (2001), on the reversed graph with one virtual exit. A branch table is a
//! node of its own, so that many `brx.idx` on one long table cost no more than their sum.
//!
//! Missed: a block that cannot reach an exit (an endless loop) has no post-dominator.

use crate::isa::Op;
use crate::module::{Function, Operand};

/// A basic block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Index of the first instruction.
    pub start: u32,
    /// One past the last instruction.
    pub end: u32,
    /// Blocks that may follow, without repetition; empty where the thread ends or returns. Targets
    /// of a `brx.idx` are not among them: see `table`.
    pub successors: Vec<u32>,
    /// The branch table whose targets may follow, too.
    pub table: Option<u32>,
    /// True if a thread may end or return here.
    pub exits: bool,
}

/// Basic blocks of a function and where diverged threads meet again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlFlow {
    /// Blocks in order of the body.
    pub blocks: Vec<Block>,
    /// The block of each instruction.
    pub block_of: Vec<u32>,
    /// Immediate post-dominator of each block; `None` is the function's end (or nothing, for a
    /// block from which no end can be reached).
    pub post_dominator: Vec<Option<u32>>,
    /// True for the first instruction of a block.
    pub is_leader: Vec<bool>,
    /// True for the last instruction of a block.
    pub is_last: Vec<bool>,
}

const UNSET: usize = usize::MAX;

impl ControlFlow {
    /// The control flow of `function`; empty for a declaration without a body.
    pub fn of(function: &Function) -> ControlFlow {
        let body = &function.body;
        let mut is_leader = vec![false; body.len()];
        if let Some(first) = is_leader.first_mut() {
            *first = true;
        }
        for (i, instr) in body.iter().enumerate() {
            if splits(instr.op)
                && let Some(next) = is_leader.get_mut(i + 1)
            {
                *next = true;
            }
            for operand in &instr.operands {
                if let Operand::Label(target) = operand
                    && let Some(leader) = is_leader.get_mut(*target as usize)
                {
                    *leader = true;
                }
            }
        }
        for table in &function.branch_tables {
            for target in &table.targets {
                if let Some(leader) = is_leader.get_mut(*target as usize) {
                    *leader = true;
                }
            }
        }
        let mut blocks: Vec<Block> = Vec::new();
        let mut block_of = Vec::with_capacity(body.len());
        for (i, leader) in is_leader.iter().enumerate() {
            // A body has fewer instructions than its text has bytes, which fit u32.
            let at = i as u32;
            if *leader {
                blocks.push(Block { start: at, end: at, successors: Vec::new(), table: None, exits: false });
            }
            if let Some(block) = blocks.last_mut() {
                block.end = at + 1;
            }
            block_of.push(blocks.len() as u32 - 1);
        }
        let mut is_last = vec![false; body.len()];
        for (b, block) in blocks.iter_mut().enumerate() {
            let last = block.end as usize - 1;
            is_last[last] = true;
            let instr = &body[last];
            let guarded = instr.guard.is_some();
            let mut falls = guarded;
            match instr.op {
                Op::Bra => {
                    if let Some(Operand::Label(target)) = instr.operands.first()
                        && let Some(target) = block_of.get(*target as usize)
                    {
                        block.successors.push(*target);
                    }
                }
                Op::BrxIdx => {
                    if let Some(Operand::BranchTable(table)) = instr.operands.get(1) {
                        block.table = Some(*table);
                    }
                }
                Op::Ret | Op::Exit | Op::Trap => block.exits = true,
                _ => falls = true,
            }
            let next = b as u32 + 1;
            if falls && (block.end as usize) < body.len() && !block.successors.contains(&next) {
                block.successors.push(next);
            }
        }
        let post_dominator = post_dominators(function, &blocks, &block_of);
        ControlFlow { blocks, block_of, post_dominator, is_leader, is_last }
    }

    /// The instruction where threads that diverge at `instr` meet again: the start of its block's
    /// immediate post-dominator. `None` is the function's end.
    ///
    /// Panics if `instr` is not an instruction of the function.
    pub fn reconvergence(&self, instr: u32) -> Option<u32> {
        let block = self.block_of[instr as usize] as usize;
        self.post_dominator[block].map(|b| self.blocks[b as usize].start)
    }
}

/// True if a block ends after `op`.
fn splits(op: Op) -> bool {
    matches!(op, Op::Bra | Op::BrxIdx | Op::Ret | Op::Exit | Op::Trap)
}

fn post_dominators(function: &Function, blocks: &[Block], block_of: &[u32]) -> Vec<Option<u32>> {
    // Nodes: blocks, then branch tables, then the exit.
    let tables = function.branch_tables.len();
    let exit = blocks.len() + tables;
    let mut forward: Vec<Vec<usize>> = vec![Vec::new(); exit + 1];
    for (b, block) in blocks.iter().enumerate() {
        forward[b].extend(block.successors.iter().map(|s| *s as usize));
        forward[b].extend(block.table.map(|t| blocks.len() + t as usize));
        if block.exits {
            forward[b].push(exit);
        }
    }
    for (t, table) in function.branch_tables.iter().enumerate() {
        let targets = table.targets.iter().filter_map(|at| block_of.get(*at as usize));
        forward[blocks.len() + t].extend(targets.map(|b| *b as usize));
    }
    let mut backward: Vec<Vec<usize>> = vec![Vec::new(); exit + 1];
    for (from, list) in forward.iter().enumerate() {
        for to in list {
            backward[*to].push(from);
        }
    }
    // Post-order of the reversed graph from the exit, without recursion.
    let mut number = vec![UNSET; exit + 1];
    let mut order = Vec::with_capacity(exit + 1);
    let mut visited = vec![false; exit + 1];
    let mut stack = vec![(exit, 0usize)];
    visited[exit] = true;
    while let Some((node, next)) = stack.pop() {
        match backward[node].get(next) {
            Some(pred) => {
                stack.push((node, next + 1));
                if !visited[*pred] {
                    visited[*pred] = true;
                    stack.push((*pred, 0));
                }
            }
            None => {
                number[node] = order.len();
                order.push(node);
            }
        }
    }
    let mut dominator = vec![UNSET; exit + 1];
    dominator[exit] = exit;
    let meet = |dominator: &[usize], mut a: usize, mut b: usize| {
        while a != b {
            while number[a] < number[b] {
                a = dominator[a];
            }
            while number[b] < number[a] {
                b = dominator[b];
            }
        }
        a
    };
    let mut changed = true;
    while changed {
        changed = false;
        for node in order.iter().rev().copied().filter(|n| *n != exit) {
            let mut found = UNSET;
            for next in &forward[node] {
                if dominator[*next] != UNSET {
                    found = if found == UNSET { *next } else { meet(&dominator, found, *next) };
                }
            }
            if found != UNSET && dominator[node] != found {
                dominator[node] = found;
                changed = true;
            }
        }
    }
    (0..blocks.len())
        .map(|b| {
            let mut at = dominator[b];
            // A table is no place in the code; what post-dominates it is.
            while at != UNSET && at >= blocks.len() && at != exit {
                at = dominator[at];
            }
            if at == UNSET || at == exit { None } else { Some(at as u32) }
        })
        .collect()
}
