//! Products of cuBLAS, by the library's own.

use super::*;

impl Interp<'_, '_> {
    /// The arguments of `cublasGemmEx` as those of `cublas<t>gemm`, and their one element type.
    pub(super) fn gemm_ex(&self, args: &[Val], at: u32) -> R<(DType, Vec<Val>)> {
        if args.len() != 19 {
            return self.rejected(at, format!("`cublasGemmEx` with {} arguments", args.len()));
        }
        let named = |i: usize| match &args[i] {
            Val::Opaque(n) => Some(&**n),
            _ => None,
        };
        let (types, compute) = ([8, 11, 15].map(named), named(17));
        let double = |t: DType| t == DType::F64;
        let dtype = match types {
            [Some("CUDA_R_32F"), Some("CUDA_R_32F"), Some("CUDA_R_32F")] => DType::F32,
            [Some("CUDA_R_64F"), Some("CUDA_R_64F"), Some("CUDA_R_64F")] => DType::F64,
            [Some("CUDA_R_16F"), Some("CUDA_R_16F"), Some("CUDA_R_16F")] => DType::F16,
            [Some("CUDA_R_16BF"), Some("CUDA_R_16BF"), Some("CUDA_R_16BF")] => DType::BF16,
            _ => return self.unsupported(at, "`cublasGemmEx` of these element types"),
        };
        // Its factors are of the type that it computes in.
        let computes = match compute {
            Some("CUBLAS_COMPUTE_64F" | "CUDA_R_64F") => double(dtype),
            Some("CUBLAS_COMPUTE_32F" | "CUBLAS_COMPUTE_32F_PEDANTIC" | "CUDA_R_32F") => !double(dtype),
            _ => false,
        };
        if !computes {
            return self.unsupported(at, "`cublasGemmEx` in this type of computation");
        }
        let kept = (0..17).filter(|i| ![8, 11, 15].contains(i));
        Ok((dtype, kept.filter_map(|i| args.get(i).cloned()).collect()))
    }

    /// `cublas<t>gemm`, column-major, through the library's product.
    pub(super) fn gemm(&mut self, name: &str, args: &[Val], dtype: DType, at: u32) -> R<()> {
        let batched = name.contains("StridedBatched");
        if args.len() != if batched { 18 } else { 14 } {
            return self.rejected(at, format!("`{name}` with {} arguments", args.len()));
        }
        let transposed = |v: &Val| matches!(v, Val::Opaque(n) if &**n != "CUBLAS_OP_N");
        let int = |this: &mut Self, v: &Val| this.bytes_of(v, name, at);
        let (m, n, k) = (int(self, &args[3])?, int(self, &args[4])?, int(self, &args[5])?);
        let scalar = |this: &mut Self, v: &Val| match v {
            Val::Ptr(p) => this.read_pointer(p, at),
            _ => this.rejected(at, format!("`{name}` takes pointers to its factors")),
        };
        let alpha = scalar(self, &args[6])?;
        // Behind A, B and C come their leading dimensions, and in batches their strides.
        let step = if batched { 3 } else { 2 };
        let (a, b) = (7, 7 + step);
        let beta = scalar(self, &args[b + step])?;
        let c = b + step + 1;
        let count = if batched { int(self, &args[17])? } else { 1 };
        let matrix = |this: &mut Self, from: usize, rows: u64, columns: u64, flip: bool| -> R<Tensor> {
            let Val::Ptr(p) = &args[from] else {
                return this.rejected(at, format!("`{name}` takes pointers"));
            };
            let Target::Storage(storage, device) = &p.target else {
                return this.fault(at, format!("`{name}` of what is no device memory"));
            };
            let lead = this.bytes_of(&args[from + 1], name, at)?;
            let apart = if batched { this.bytes_of(&args[from + 2], name, at)? } else { 0 };
            let offset = u64::try_from(p.offset).unwrap_or(u64::MAX) / dtype.size_bytes();
            let (mut sizes, mut strides) =
                (vec![rows, columns], if flip { vec![lead, 1] } else { vec![1, lead] });
            if batched {
                sizes.insert(0, count);
                strides.insert(0, apart);
            }
            let last = sizes
                .iter()
                .zip(&strides)
                .fold(offset, |sum, (s, d)| sum.saturating_add(s.saturating_sub(1).saturating_mul(*d)));
            let inside = last.saturating_add(1).saturating_mul(dtype.size_bytes()) <= storage.len_bytes();
            if !inside && sizes.iter().all(|s| *s > 0) {
                return this.fault(at, format!("`{name}` leaves a matrix of {} bytes", storage.len_bytes()));
            }
            Ok(Tensor { storage: storage.clone(), dtype, sizes, strides, offset, device: *device })
        };
        let left = matrix(self, a, m, k, transposed(&args[1]))?;
        let right = matrix(self, b, k, n, transposed(&args[2]))?;
        let out = matrix(self, c, m, n, false)?;
        let product = if batched { "bmm" } else { "mm" };
        let mut sum =
            self.library_call(product, vec![Val::Tensor(Some(left)), Val::Tensor(Some(right))], at)?;
        let is = |v: &Val, x: f64| matches!(v, Val::Num(Number::Float(y, _)) if *y == x);
        if !is(&alpha, 1.0) {
            sum = self.library_call("mul", vec![sum, alpha], at)?;
        }
        if !is(&beta, 0.0) {
            let old = self.library_call("mul", vec![Val::Tensor(Some(out.clone())), beta], at)?;
            sum = self.library_call("add", vec![sum, old], at)?;
        }
        self.copy_into(&out, &sum, at)
    }
}
