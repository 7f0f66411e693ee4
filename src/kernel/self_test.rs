//! Calls of a model with their answers, which an object carries for `NAME_selftest`.
use super::ModelInterface;
use crate::tensor::{DType, DTypeClass, TensorInfo};
use bytes::Bytes;

/// Upper limit of block sums that an object stores for one array.
pub const MOST_SUMS: u64 = 64;
/// Bytes to which each array in the workspace is aligned.
const ALIGN: u64 = 64;

/// Calls in order over one state, with the results that they must give.
#[derive(Clone, Debug, Default)]
pub struct SelfTest {
    /// The calls.
    pub calls: Vec<TestCall>,
    /// The expected values of variables after the last call; `None` for variables that no call changes.
    pub variables: Vec<Option<ExpectedArray>>,
}

/// One call of a self-test.
#[derive(Clone, Debug)]
pub struct TestCall {
    /// Index of the function among the model's entry points.
    pub function: usize,
    /// The arguments.
    pub args: Vec<TestInput>,
    /// The sizes of the call: those that the caller passes, followed by the data-dependent sizes that the call must return; `None` if no
    /// axis has that size.
    pub sizes: Vec<Option<u64>>,
    /// The results.
    pub results: Vec<ExpectedArray>,
}

/// An argument of a call in a self-test.
#[derive(Clone, Debug)]
pub enum TestInput {
    /// The bytes of an array, which the object stores.
    Stored(Bytes),
    /// Random numbers that the target generates by splitmix64.
    Drawn(RandomInput),
}

/// An argument filled with random numbers that the target generates.
#[derive(Clone, Copy, Debug)]
pub struct RandomInput {
    /// The type of the array's real numbers.
    pub dtype: DType,
    /// Number of real numbers; two for each complex element.
    pub count: u64,
    /// The state of the generator before the first number.
    pub state: u64,
}

impl RandomInput {
    /// Whether targets can generate random numbers of this type.
    pub fn supports_type(dtype: DType) -> bool {
        match dtype.class() {
            DTypeClass::Pred => true,
            DTypeClass::Signed | DTypeClass::Unsigned => dtype.bits() >= 8,
            DTypeClass::Float | DTypeClass::Complex => matches!(dtype.real_part(), DType::F32 | DType::F64),
        }
    }
}

/// The expected content of an array, as a digest.
#[derive(Clone, Debug)]
pub struct ExpectedArray {
    /// The type of the array's real numbers.
    pub dtype: DType,
    /// Number of real numbers; two for each complex element.
    pub count: u64,
    /// Digest of the array's elements.
    pub content: ExpectedContent,
}

/// The digest of an array that a self-test compares.
#[derive(Clone, Debug)]
pub enum ExpectedContent {
    /// The FNV-1a hash of the bytes, for integers and truth values.
    Hash(u32),
    /// Sums of floats.
    Sums(ExpectedSums),
}

/// Sums of blocks of floats, each with a bound on its error.
#[derive(Clone, Debug)]
pub struct ExpectedSums {
    /// Number of elements in a block; the last block may have fewer.
    pub block: u64,
    /// A power of two that each number is multiplied by before it is added, so that no sum overflows.
    pub scale: f64,
    /// The hash of which numbers are infinite or NaN; these are in no sum.
    pub classes: u32,
    /// The sums in order.
    pub sums: Vec<BlockSum>,
}

/// The expected sum of a block of scaled numbers, with its error bound.
#[derive(Clone, Copy, Debug)]
pub struct BlockSum {
    /// The expected sum.
    pub sum: f64,
    /// Upper bound of the difference.
    pub bound: f64,
}

/// The first value of 32-bit FNV-1a hashes.
pub const HASH_START: u32 = 0x811C_9DC5;
/// The factor of 32-bit FNV-1a hashes.
pub const HASH_FACTOR: u32 = 0x0100_0193;

/// Adds a byte to a 32-bit FNV-1a hash.
pub fn fnv1a_step(hash: u32, byte: u8) -> u32 {
    (hash ^ u32::from(byte)).wrapping_mul(HASH_FACTOR)
}

/// Byte offsets of arrays in the workspace of a self-test.
#[derive(Clone, Debug, Default)]
pub struct TestArrays {
    /// Offset of each argument; `None` if the object stores it.
    pub args: Vec<Option<u64>>,
    /// Offset of each result.
    pub results: Vec<u64>,
    /// The end of the last array.
    pub end: u64,
}

impl TestCall {
    /// Lays out the arrays of the call from offset `from` on, with room for the largest sizes.
    pub fn arrays(&self, args: &[TensorInfo], results: &[TensorInfo], from: u64) -> TestArrays {
        let mut end = from;
        let mut place = |info: &TensorInfo| {
            let at = end.next_multiple_of(ALIGN);
            end = at + info.bytes();
            at
        };
        let drawn = |(input, info)| match input {
            &TestInput::Drawn(_) => Some(place(info)),
            TestInput::Stored(_) => None,
        };
        let args = self.args.iter().zip(args).map(drawn).collect();
        let results = results.iter().map(place).collect();
        TestArrays { args, results, end }
    }
}

impl ModelInterface {
    /// The byte offset of the state in the workspace of a self-test, behind the workspace of the functions.
    pub fn self_test_state_offset(&self) -> u64 {
        self.workspace_bytes().next_multiple_of(ALIGN)
    }

    /// The byte offset of the arrays of calls in the workspace of a self-test.
    pub fn test_arrays_offset(&self) -> u64 {
        (self.self_test_state_offset() + self.state_bytes()).next_multiple_of(ALIGN)
    }

    /// Bytes of workspace that the self-test needs; `None` without a self-test.
    pub fn test_workspace_bytes(&self) -> Option<u64> {
        let test = self.self_test.as_ref()?;
        let from = self.test_arrays_offset();
        let end = |call: &TestCall| {
            let program = &self.entries.get(call.function)?.program;
            Some(call.arrays(&program.args, &program.results, from).end)
        };
        Some(test.calls.iter().filter_map(end).max().unwrap_or(from))
    }
}
