//! Variables whose values change size, up to the capacity that the caller allows.
use crate::diag::{Code, Error, Result};
use crate::hlo::symbolic::InstId;
use crate::hlo::symbolic::PadDim;
use crate::ops::LowerCtx;
use crate::ops::array::shape::dims_constant;
use crate::symbolic::Dim;
use crate::tensor::DType;

impl LowerCtx<'_> {
    /// Value of variable `id`, with its current sizes.
    ///
    /// # Errors
    /// `Code::UnsupportedCase` in scalar functions; those of [`LowerCtx::data_dependent_size`].
    pub fn read_resizable(&mut self, id: usize) -> Result<InstId> {
        let mut value = self.store.read(id)?;
        let axes = self.store.growth_axes(id).to_vec();
        for (i, &axis) in axes.iter().enumerate() {
            let sizes = self.store.read(id + 1)?;
            let count = self.b.slice_axis(sizes, 0, Dim::from(i as u64), Dim::from(i as u64 + 1));
            let count = self.b.reshape(count, &[]);
            let count = self.b.convert(count, DType::S32);
            let made = format!("the variable `{}`", self.store.name(id));
            let size = self.data_dependent_size(count, self.b.dims(value)[axis], &made)?;
            value = self.b.slice_axis(value, axis, Dim::from(0), size);
        }
        Ok(value)
    }
    /// Assigns a value to the growing variable `id`. A call fails if the value exceeds the variable's capacity.
    ///
    /// # Errors
    /// `DynamicShape` if the sizes along other axes differ; those of [`LowerCtx::check_state_size`].
    pub fn assign_resizable(&mut self, id: usize, value: InstId) -> Result<()> {
        let (axes, name) = (self.store.growth_axes(id).to_vec(), self.store.name(id).to_string());
        let given = self.b.dims(value).to_vec();
        let room = self.store.dtype_and_dims(id).map(|(_, dims)| dims.to_vec()).unwrap_or_default();
        let is_fixed = |axis: &usize| !axes.contains(axis);
        if given.len() != room.len() || (0..room.len()).filter(is_fixed).any(|axis| given[axis] != room[axis]) {
            let told = format!("the variable `{name}` has room for {room:?}, and is given {given:?}");
            return Err(Error::user(Code::DynamicShape, told));
        }
        let mut whole = value;
        let mut sizes = Vec::with_capacity(axes.len());
        for &axis in &axes {
            let size = dims_constant(self, DType::S64, &[Dim::from(1)], &[given[axis]])?;
            sizes.push(size);
            let asked = self.b.reshape(size, &[]);
            self.check_state_size(&name, asked, room[axis].guarded_count())?;
            // Zero-pads the value, and slices it to the variable's capacity.
            let zero = self.b.scalar(self.b.dtype(value), 0.0);
            let mut pads = vec![PadDim::default(); room.len()];
            pads[axis].high = room[axis];
            whole = self.b.pad(whole, zero, &pads);
            whole = self.b.slice_axis(whole, axis, Dim::from(0), room[axis]);
        }
        let sizes = self.b.concatenate(&sizes, 0);
        self.store.write(id, whole, self.b.dtype(whole), self.b.dims(whole))?;
        self.store.write(id + 1, sizes, DType::S64, self.b.dims(sizes))
    }
}
