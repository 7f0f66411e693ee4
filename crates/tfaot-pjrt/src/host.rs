//! Copies between arrays of the host and buffers, and buffers over the host's memory where nothing need be copied.
use crate::boundary::{give, object, slice};
use crate::buffer::{Buffer, memory_of};
use crate::c_api::buffer::{BufferCopyRawToHostArgs, BufferToHostBufferArgs, ClientBufferFromHostBufferArgs};
use crate::element;
use crate::event::Event;
use crate::failure::{Code, Failure};
use crate::layouts::MinorToMajor;
use crate::storage::{Block, Storage};

/// `PJRT_HostBufferSemantics_kImmutableZeroCopy`; the one behind it allows the same.
const ZERO_COPY: i32 = 2;

/// An array whose elements lie apart.
struct Strided<'a> {
    dims: &'a [i64],
    /// Bytes from an element to the next along each axis, of both sides.
    from: &'a [i64],
    to: &'a [i64],
    element: usize,
}

impl Strided<'_> {
    /// Copies all elements.
    ///
    /// # Safety
    /// Both pointers have the array's elements at its strides, and nobody writes to either.
    unsafe fn copy(&self, from: *const u8, to: *mut u8) {
        self.copy_axis(0, from, to);
    }

    fn copy_axis(&self, axis: usize, from: *const u8, to: *mut u8) {
        let Some(&count) = self.dims.get(axis) else {
            // SAFETY: `copy`'s caller answers for the elements.
            return unsafe { std::ptr::copy_nonoverlapping(from, to, self.element) };
        };
        let (step_from, step_to) = (self.from[axis] as isize, self.to[axis] as isize);
        let element = self.element as isize;
        if axis + 1 == self.dims.len() && step_from == element && step_to == element {
            // SAFETY: as above; the elements of a row lie beside one another.
            return unsafe { std::ptr::copy_nonoverlapping(from, to, count as usize * self.element) };
        }
        for i in 0..count as isize {
            // wrapping, as an array without elements has no memory to point into
            self.copy_axis(axis + 1, from.wrapping_offset(i * step_from), to.wrapping_offset(i * step_to));
        }
    }
}

/// `PJRT_Client_BufferFromHostBuffer`.
pub fn from_host(args: &mut ClientBufferFromHostBufferArgs) -> Result<(), Failure> {
    let dtype = element::of_number(args.kind)?;
    let dims = slice(args.dims, args.num_dims).to_vec();
    let bytes = element::bytes(dtype, &dims)?;
    MinorToMajor::of_caller(args.device_layout, dims.len(), dtype)?.require_row_major(&dims)?;
    let own = MinorToMajor::row_major(dims.len()).strides(&dims, dtype.bytes());
    let strides = match args.num_byte_strides {
        0 => own.clone(),
        n if n == dims.len() => slice(args.byte_strides, n).to_vec(),
        n => return Err(Failure::new(Code::InvalidArgument, format!("{n} strides for {} axes", dims.len()))),
    };
    let from: *const u8 = args.data.cast();
    if from.is_null() && bytes > 0 {
        return Err(Failure::new(Code::InvalidArgument, "the host's memory is null"));
    }
    let is_dense = dims.iter().zip(strides.iter().zip(&own)).all(|(&n, (a, b))| n == 1 || a == b);
    let memory = memory_of(args.client, args.device, args.memory)?;
    let is_shared =
        args.host_buffer_semantics >= ZERO_COPY && bytes > 0 && is_dense && from.align_offset(dtype.bytes()) == 0;
    let (storage, done) = if is_shared {
        let done = Event::new();
        (Storage::Host { at: from, done: done.clone() }, done)
    } else {
        let to = Block::new(bytes)?;
        let array = Strided { dims: &dims, from: &strides, to: &own, element: dtype.bytes() };
        if bytes > 0 {
            // SAFETY: the caller's array has these strides, the new block is dense and nobody else's.
            unsafe { array.copy(from, to.as_ptr()) };
        }
        (Storage::Own(to), Event::ready())
    };
    args.buffer = give(Buffer::new(storage, dtype, dims, memory)?);
    args.done_with_host_buffer = give(done);
    Ok(())
}

/// `PJRT_Buffer_ToHostBuffer`.
pub fn to_host(args: &mut BufferToHostBufferArgs) -> Result<(), Failure> {
    let buffer = object(args.src)?;
    let (storage, bytes) = (buffer.storage()?, buffer.bytes()?);
    if args.dst.is_null() {
        args.dst_size = bytes;
        args.event = std::ptr::null_mut();
        return Ok(());
    }
    if args.dst_size < bytes {
        let told = format!("the array has {bytes} bytes, and there is memory for {}", args.dst_size);
        return Err(Failure::new(Code::InvalidArgument, told));
    }
    let (dims, element) = (&buffer.dims, buffer.dtype.bytes());
    let from = MinorToMajor::row_major(dims.len()).strides(dims, element);
    let to = host_strides(args, dims, element, buffer)?;
    if bytes > 0 {
        let array = Strided { dims, from: &from, to: &to, element };
        // SAFETY: both have the bytes of the array, and the caller's memory is its own.
        unsafe { array.copy(storage.as_ptr(), args.dst.cast()) };
    }
    args.event = give(Event::ready());
    Ok(())
}

/// The strides of the host's array, which is dense in some order of its axes.
fn host_strides(
    args: &BufferToHostBufferArgs,
    dims: &[i64],
    element: usize,
    buffer: &Buffer,
) -> Result<Vec<i64>, Failure> {
    let layout = args.host_layout;
    if layout.is_null() || object(layout)?.kind == 0 {
        return Ok(MinorToMajor::of_caller(layout, dims.len(), buffer.dtype)?.strides(dims, element));
    }
    // SAFETY: the layout is one of strides, as its kind says.
    let strides = unsafe { object(layout)?.content.strides };
    let own = slice(strides.byte_strides, strides.num_byte_strides).to_vec();
    // an order of the axes gives the same strides, or the array would not fit into its bytes
    let mut axes: Vec<i64> = (0..dims.len() as i64).collect();
    axes.sort_by_key(|&axis| own.get(axis as usize).copied().unwrap_or(0));
    let mut step = element as i64;
    for &axis in &axes {
        let (n, stride) = (dims[axis as usize], own.get(axis as usize).copied());
        if n > 1 && stride != Some(step) {
            return Err(Failure::new(Code::Unimplemented, "the host's array is not dense"));
        }
        step *= n.max(1);
    }
    Ok(own)
}

/// `PJRT_Buffer_CopyRawToHost`.
pub fn raw_to_host(args: &mut BufferCopyRawToHostArgs) -> Result<(), Failure> {
    let buffer = object(args.buffer)?;
    let (storage, bytes) = (buffer.storage()?, buffer.bytes()?);
    let (Ok(offset), Ok(count)) = (usize::try_from(args.offset), usize::try_from(args.transfer_size)) else {
        return Err(Failure::new(Code::InvalidArgument, "an offset or a number of bytes is below zero"));
    };
    if offset.checked_add(count).is_none_or(|end| end > bytes) {
        let told = format!("{count} bytes from byte {offset} on were asked for of {bytes}");
        return Err(Failure::new(Code::InvalidArgument, told));
    }
    // SAFETY: the bytes are in the array, and the caller has memory for them.
    unsafe { std::ptr::copy_nonoverlapping(storage.as_ptr().add(offset), args.dst.cast(), count) };
    args.event = give(Event::ready());
    Ok(())
}
