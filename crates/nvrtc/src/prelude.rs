//! What `nvcc` gives every file and NVRTC does not: limits, float constants, fixed-width integers.
//!
//! `nvcc` includes `cuda_runtime.h` before a file's first line, so code written for it uses `INFINITY`, `FLT_MAX` or
//! `uint32_t` freely. The same names stand before every unit here, and the headers that usually bring them exist as
//! empty texts. Values: IEEE 754 and the LP64 model; integer types as NVRTC's own C++ headers have them.

/// Macros and their bodies, in order; limits token by token as in NVRTC's own `<cuda/std/climits>` and `<cuda/std/cfloat>`, or it
/// would warn of another definition.
pub(crate) const MACROS: &[(&str, &str)] = &[
    ("CHAR_BIT", "8"),
    ("SCHAR_MIN", "(-128)"),
    ("SCHAR_MAX", "127"),
    ("UCHAR_MAX", "255"),
    ("SHRT_MIN", "(-SHRT_MAX - 1)"),
    ("SHRT_MAX", "0x7fff"),
    ("USHRT_MAX", "0xffff"),
    ("INT_MIN", "(-INT_MAX - 1)"),
    ("INT_MAX", "0x7fffffff"),
    ("UINT_MAX", "0xffffffff"),
    ("LONG_MIN", "(-LONG_MAX - 1)"),
    ("LONG_MAX", "LLONG_MAX"),
    ("ULONG_MAX", "ULLONG_MAX"),
    ("LLONG_MIN", "(-LLONG_MAX - 1)"),
    ("LLONG_MAX", "0x7fffffffffffffffLL"),
    ("ULLONG_MAX", "0xffffffffffffffffUL"),
    ("INT8_MIN", "SCHAR_MIN"),
    ("INT8_MAX", "SCHAR_MAX"),
    ("UINT8_MAX", "UCHAR_MAX"),
    ("INT16_MIN", "SHRT_MIN"),
    ("INT16_MAX", "SHRT_MAX"),
    ("UINT16_MAX", "USHRT_MAX"),
    ("INT32_MIN", "INT_MIN"),
    ("INT32_MAX", "INT_MAX"),
    ("UINT32_MAX", "UINT_MAX"),
    ("INT64_MIN", "LLONG_MIN"),
    ("INT64_MAX", "LLONG_MAX"),
    ("UINT64_MAX", "ULLONG_MAX"),
    ("SIZE_MAX", "UINT64_MAX"),
    ("FLT_RADIX", "2"),
    ("FLT_MANT_DIG", "24"),
    ("FLT_DIG", "6"),
    ("FLT_MIN_EXP", "(-125)"),
    ("FLT_MAX_EXP", "128"),
    ("FLT_MIN", "1.17549435082228750796873653722224568e-38f"),
    ("FLT_MAX", "3.40282346638528859811704183484516925e+38f"),
    ("FLT_EPSILON", "1.19209289550781250000000000000000000e-7f"),
    ("DBL_MANT_DIG", "53"),
    ("DBL_DIG", "15"),
    ("DBL_MIN_EXP", "(-1021)"),
    ("DBL_MAX_EXP", "1024"),
    ("DBL_MIN", "2.22507385850720138309023271733240406e-308"),
    ("DBL_MAX", "1.79769313486231570814527423731704357e+308"),
    ("DBL_EPSILON", "2.22044604925031308084726333618164062e-16"),
    ("INFINITY", "__builtin_bit_cast(float, 0x7f800000)"),
    ("HUGE_VALF", "__builtin_bit_cast(float, 0x7f800000)"),
    ("HUGE_VAL", "__builtin_bit_cast(double, 0x7ff0000000000000)"),
    ("NAN", "__builtin_bit_cast(float, 0x7fffffff)"),
    ("M_E", "2.7182818284590452354"),
    ("M_LOG2E", "1.4426950408889634074"),
    ("M_LOG10E", "0.43429448190325182765"),
    ("M_LN2", "0.69314718055994530942"),
    ("M_LN10", "2.30258509299404568402"),
    ("M_PI", "3.14159265358979323846"),
    ("M_PI_2", "1.57079632679489661923"),
    ("M_PI_4", "0.78539816339744830962"),
    ("M_1_PI", "0.31830988618379067154"),
    ("M_2_PI", "0.63661977236758134308"),
    ("M_2_SQRTPI", "1.12837916709551257390"),
    ("M_SQRT2", "1.41421356237309504880"),
    ("M_SQRT1_2", "0.70710678118654752440"),
];

const TYPES: &str = "\
typedef signed char int8_t; typedef signed short int16_t; typedef signed int int32_t; typedef signed long long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long long uint64_t; typedef int64_t intptr_t; typedef uint64_t uintptr_t;
typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint; typedef unsigned long ulong;
";

/// Headers that exist as empty texts, because what they bring stands in the prelude or is built into NVRTC.
pub(crate) const HEADERS: &[&str] = &[
    "assert.h",
    "cassert",
    "cfloat",
    "climits",
    "cmath",
    "cstddef",
    "cstdint",
    "cstdio",
    "cstdlib",
    "cstring",
    "cuda.h",
    "cuda_runtime.h",
    "cuda_runtime_api.h",
    "device_functions.h",
    "device_launch_parameters.h",
    "float.h",
    "limits.h",
    "math.h",
    "math_functions.h",
    "stddef.h",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
    "string.h",
];

/// The body of a prelude macro.
pub(crate) fn macro_body(name: &str) -> Option<&'static str> {
    MACROS.iter().find(|(n, _)| *n == name).map(|(_, body)| *body)
}

/// The text that stands before every program. A `-D` of the user wins over a macro.
pub(crate) fn text() -> String {
    let mut out = String::from("#line 1 \"assay-prelude\"\n");
    for (name, body) in MACROS {
        out.push_str(&format!("#ifndef {name}\n#define {name} {body}\n#endif\n"));
    }
    out.push_str(TYPES);
    out
}
