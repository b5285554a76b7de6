//! The reference language: lines `name = expression` of PyTorch functional calls and arithmetic.
//!
//! ```text
//! program    := { line }
//! line       := [ targets '=' expression ] [ '#' comment ]
//! targets    := NAME { ',' NAME }                      several take a tuple apart
//! expression := sum [ ('<' | '<=' | '>' | '>=' | '==' | '!=') sum ]
//! sum        := product { ('+' | '-') product }
//! product    := unary { ('*' | '/' | '//' | '%' | '@') unary }
//! unary      := ('-' | '+') unary | power
//! power      := postfix [ '**' unary ]
//! postfix    := atom { '[' INTEGER ']' }
//! atom       := NUMBER | STRING | 'True' | 'False' | 'None' | 'inf' | 'nan' | NAME
//!             | OP '(' arguments ')' | '(' expression ')' | '(' tuple ')' | '[' tuple ']'
//! ```
//!
//! Precedence and associativity are Python's; a line goes on inside parentheses. Names are inputs, scalars and dims,
//! and earlier lines; a later line may bind a name again. Not in the language: methods, attributes, slices, loops.

mod eval;
mod lexer;
pub(crate) mod parser;

pub use eval::Caller;
pub use parser::Program;
