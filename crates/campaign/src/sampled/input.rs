//! An input at extents that no memory holds, never made whole, and the reference at chosen elements.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use assay_ops::Variant;
use assay_ops::sampled::{
    Limits, Region, SampleError, Sampling, Source, boxes, extents as extents_of, for_rows, region_len,
};
use assay_problems::{Extents, InputValues, Problem, Recipe};
use assay_simt::Generated;
use assay_tensor::{DType, Tensor};

use crate::CampaignError;

/// Reference values at some elements of the outputs, by output.
pub type Expected = BTreeMap<String, Points>;

/// Elements of an output and what the reference has there.
#[derive(Clone, Debug)]
pub struct Points {
    /// Row-major indices, ascending.
    pub index: Vec<u64>,
    /// One element per index.
    pub values: Tensor,
}

/// Inputs as functions of their index.
struct Values(BTreeMap<String, Arc<InputValues>>);

impl Source for Values {
    fn shape(&self, name: &str) -> Option<Vec<u64>> {
        self.0.get(name).map(|v| v.shape.clone())
    }

    fn read(&self, name: &str, region: &[Range<u64>]) -> Result<Tensor, String> {
        let values = self.0.get(name).ok_or("no such input")?;
        let size = usize::try_from(values.dtype.size_bytes()).map_err(|e| e.to_string())?;
        let mut data = Vec::new();
        for_rows(&values.shape, region, |first, len| {
            let from = data.len();
            data.resize(from + len as usize * size, 0);
            values.fill(first, &mut data[from..]);
        });
        Tensor::from_bytes(values.dtype, &extents_of(region), data).map_err(|e| e.to_string())
    }
}

/// An output of the problem at these extents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputShape {
    /// Its name.
    pub name: String,
    /// Element type, as the float32 reference has it.
    pub dtype: DType,
    /// Extents, outermost first.
    pub shape: Vec<u64>,
}

/// A recipe at extents that no memory holds, most often the official ones.
pub struct OfficialInput {
    /// The recipe's text.
    pub text: String,
    /// Dims and derived dims.
    pub dims: BTreeMap<String, u64>,
    /// Inputs and parameters in the problem's order.
    pub values: Vec<(String, Arc<InputValues>)>,
    /// The outputs in order.
    pub outputs: Vec<OutputShape>,
    source: Values,
    sampling: Sampling,
}

impl OfficialInput {
    /// Works out shapes and dtypes; no tensor is made but one element of every output.
    ///
    /// # Errors
    /// `Input` where the recipe does not fit, or an output depends on more than can be held.
    pub fn new(problem: &Problem, recipe: &Recipe) -> Result<OfficialInput, CampaignError> {
        OfficialInput::at(problem, recipe, Extents::Official)
    }

    /// As [`OfficialInput::new`], at these extents with the recipe's overrides.
    ///
    /// # Errors
    /// As [`OfficialInput::new`].
    pub fn at(problem: &Problem, recipe: &Recipe, extents: Extents) -> Result<OfficialInput, CampaignError> {
        let text = recipe.to_string();
        let fault =
            |what: String| CampaignError::Input(format!("`{}` on input `{text}`: {what}", problem.key()));
        let dims = problem.dims_for(recipe, extents).map_err(|e| fault(e.to_string()))?;
        let mut made = problem.input_values(recipe, extents).map_err(|e| fault(e.to_string()))?;
        let values: Vec<(String, Arc<InputValues>)> = problem
            .inputs
            .iter()
            .filter_map(|i| made.remove(&i.name).map(|v| (i.name.clone(), Arc::new(v))))
            .collect();
        let source = Values(values.iter().cloned().collect());
        let scalars = problem.reference_scalars(&dims);
        let sampling = Sampling::new(&problem.reference, &|n| source.shape(n), &scalars)
            .map_err(|e| fault(format!("reference: {e}")))?;
        let mut outputs = Vec::new();
        for name in &problem.outputs {
            let shape = sampling.shape(name).map_err(|e| fault(e.to_string()))?.to_vec();
            let corner: Region = shape.iter().map(|_| 0..1).collect();
            let one = sampling
                .evaluate(&source, name, &corner, &Variant::official(), &Limits::default())
                .map_err(|e| fault(format!("reference: {e}")))?;
            outputs.push(OutputShape { name: name.clone(), dtype: one.dtype, shape });
        }
        Ok(OfficialInput { text, dims, values, outputs, source, sampling })
    }

    /// The elements of an input for the device.
    pub fn generated(values: &Arc<InputValues>) -> Generated {
        let values = Arc::clone(values);
        Generated::from_fn(move |first, out: &mut [u8]| values.fill(first, out))
    }

    /// The reference at these ascending indices of an output.
    ///
    /// # Errors
    /// As [`Sampling::evaluate`].
    pub fn reference(&self, output: &str, index: &[u64], variant: &Variant) -> Result<Points, SampleError> {
        let shape = self.sampling.shape(output)?.to_vec();
        let mut all: Vec<(u64, [u8; 8])> = Vec::with_capacity(index.len());
        let mut dtype = DType::F32;
        for region in boxes(&shape, index.iter().copied()) {
            debug_assert!(region_len(&region).is_some());
            let part = self.sampling.evaluate(&self.source, output, &region, variant, &Limits::default())?;
            dtype = part.dtype;
            let size = part.dtype.size_bytes() as usize;
            let mut elements = part.data.chunks_exact(size);
            for_rows(&shape, &region, |first, len| {
                for (i, bytes) in (first..first + len).zip(&mut elements) {
                    let mut element = [0u8; 8];
                    element[..size].copy_from_slice(bytes);
                    all.push((i, element));
                }
            });
        }
        all.sort_unstable_by_key(|(i, _)| *i);
        Ok(Points::of(dtype, &all))
    }
}

impl Points {
    /// Elements by index.
    pub(crate) fn of(dtype: DType, all: &[(u64, [u8; 8])]) -> Points {
        let size = dtype.size_bytes() as usize;
        let data = all.iter().flat_map(|(_, v)| v[..size].iter().copied()).collect();
        Points {
            index: all.iter().map(|(i, _)| *i).collect(),
            values: Tensor { dtype, shape: vec![all.len() as u64], data },
        }
    }
}
