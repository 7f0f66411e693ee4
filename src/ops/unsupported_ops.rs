//! Ops without a lowering, with the reason and a remedy: shown by the diagnostic of such an op and in `docs/ops.md`.
use crate::diag::Code;

/// Ops that have no lowering for a common reason.
pub struct UnsupportedOps {
    /// Heading for the list of these ops.
    pub title: &'static str,
    /// Reason, as a clause about one op.
    pub reason: &'static str,
    /// Remedy for a graph with such an op.
    pub help: &'static str,
    /// Code of the diagnostic for such an op.
    pub code: Code,
    /// Names of the ops, separated by white space; a leading or trailing `*` stands for any text.
    pub names: &'static str,
}

const OP: Code = Code::UnsupportedOp;
const TYPE: Code = Code::UnsupportedType;

/// Reasons for unsupported ops. An exact name takes precedence over a pattern; of several patterns the first that matches
/// counts.
#[rustfmt::skip]
pub const UNSUPPORTED_OPS: &[UnsupportedOps] = &[
    UnsupportedOps {
        title: "Input pipelines",
        reason: "input pipelines run in TensorFlow, and compiled code computes on the tensors that come out of them",
        help: "feed the tensors that the pipeline yields",
        code: OP,
        names: "*Dataset *Dataset* Iterator* *Iterator *Iterator* *MemoryCache DummyIterationCounter ThreadPoolHandle \
               ExperimentalThreadPoolHandle *StatsAggregator* MapDefun CompressElement UncompressElement ComputeBatchSize \
               GetElementAtIndex GetOptions AnonymousSeedGenerator AnonymousRandomSeedGenerator DeleteSeedGenerator \
               DeleteRandomSeedGenerator DummySeedGenerator WindowOp",
    },
    UnsupportedOps {
        title: "Files and checkpoints",
        reason: "it reads or writes files, and compiled code touches none",
        help: "read the file before the call, and feed what is in it",
        code: OP,
        names: "*Reader *Reader* ReadFile WriteFile MatchingFiles Save* Restore* MergeV2Checkpoints DistributedSave Sharded* \
               FileSystemSetConfiguration RecordInput ImmutableConst LoadAndRemapMatrix GenerateVocabRemapping \
               InitializeTableFromTextFile*",
    },
    UnsupportedOps {
        title: "Summaries and debugging",
        reason: "it only writes what somebody looks at, and compiled code computes results and does nothing else",
        help: "fetch what is to be looked at, and write it after the call",
        code: OP,
        names: "*Summary *Summary* ImportEvent Print* Debug* DumpTensor CalibrationStatisticsSaver CustomAggregator Copy \
               CopyHost",
    },
    UnsupportedOps {
        title: "Encoded images, sound and messages",
        reason: "it reads or writes an encoded form, which is a string, and compiled code holds numbers",
        help: "decode before the call, and feed the numbers",
        code: TYPE,
        names: "Decode* Encode* Parse* Serialize* Deserialize* ExtractJpegShape",
    },
    UnsupportedOps {
        title: "Strings",
        reason: "it works on strings, and compiled code holds numbers",
        help: "do it before the call, and feed the numbers that come of it",
        code: TYPE,
        names: "String* Regex* StaticRegex* Unicode* Substr ReduceJoin UnsortedSegmentJoin SdcaFprint Skipgram \
               _TensorToHashBucketFast",
    },
    UnsupportedOps {
        title: "Tables",
        reason: "its table is found by a string, as before TensorFlow had resources",
        help: "save the model again with a TensorFlow from 1.4 on, whose tables are resources",
        code: TYPE,
        names: "HashTable InitializeTable LookupTable* Mutable*Table* MutableHashTable MutableDenseHashTable MutableHashTableOfTensors",
    },
    UnsupportedOps {
        title: "Queues, barriers and stages",
        reason: "it waits for other threads, and compiled code is a function that nobody waits in",
        help: "feed what would be taken out of it",
        code: OP,
        names: "*Queue* Barrier* *Accumulator *Accumulator* Stage* Unstage Map* OrderedMap* Mutex* ConsumeMutexLock Batch \
               BatchFunction Unbatch UnbatchGrad",
    },
    UnsupportedOps {
        title: "Python and other processes",
        reason: "it runs code of another process or language, and compiled code has none but its own",
        help: "compute it before the call, and feed it",
        code: OP,
        names: "PyFunc* EagerPyFunc Rpc* DeleteRpcFutureResource RemoteCall Send Recv _Send _Recv _HostSend _HostRecv CollectiveBcast* \
               CollectiveInitializeCommunicator CollectiveReduceV3 CollectiveReduceScatterV2 CollectiveAllToAllV3",
    },
    UnsupportedOps {
        title: "Sessions, resources and clocks",
        reason: "what it gives depends on the process that it runs in, not on what is fed",
        help: "feed its result",
        code: OP,
        names: "GetSessionHandle* GetSessionTensor DeleteSessionTensor GetDeadline Timestamp SleepOp SleepIdentityOp Abort \
               DestroyResourceOp IsResourceHandleRefCounting MakeWeakResourceHandle DisableCopyOnRead IsTensorFloat32Enabled \
               CheckPinned HostConst",
    },
    UnsupportedOps {
        title: "Control flow of TensorFlow 1",
        reason: "loops and branches of TensorFlow 1 become functions before anything is lowered, and this one is of a form that none has",
        help: "export with control flow v2, as TensorFlow 2 does by default",
        code: OP,
        names: "Enter Exit LoopCond Merge NextIteration Switch RefEnter RefExit RefMerge RefNextIteration RefSwitch _SwitchN For _If \
               _While _XlaMerge",
    },
    UnsupportedOps {
        title: "What is fed",
        reason: "it stands for a value that the caller gives",
        help: "feed it",
        code: OP,
        names: "Placeholder PlaceholderV2 _Arg _DeviceArg _Retval _DeviceRetval",
    },
    UnsupportedOps {
        title: "Variables by reference",
        reason: "it changes a variable of TensorFlow 1 by reference; of such variables compiled code knows assignments",
        help: "save the model with resource variables, as TensorFlow 2 does: `ResourceApply...`, `ResourceScatter...` and the like are supported",
        code: TYPE,
        names: "Apply* SparseApply* Scatter* RefSelect CountUpTo ResourceCountUpTo TemporaryVariable DestroyTemporaryVariable \
               StridedSliceAssign",
    },
    UnsupportedOps {
        title: "Handles of TensorFlow 0.x",
        reason: "its handle is a string, which compiled code can't hold; `TensorArrayV3` and `StackV2` and what belongs to them are supported",
        help: "export with a newer TensorFlow",
        code: TYPE,
        names: "TensorArray* Stack*",
    },
    UnsupportedOps {
        title: "Made by TensorFlow itself",
        reason: "TensorFlow makes it of another op when a graph runs; no file has it",
        help: "export the graph again, as it was before TensorFlow optimized it",
        code: OP,
        names: "_Mkl* __Mkl* _ArrayToList _ListToArray _UnaryOpsComposition _Fused* _Quantized* _ScopedAllocator* _ParallelConcat* \
               _ReadVariablesOp _VarHandlesOp _HostCast _XlaCompile _XlaRun XlaLaunch XlaLaunchV2 _XlaAotOnlyVarHandleOp",
    },
    UnsupportedOps {
        title: "TensorFlow's own tests",
        reason: "it is there for TensorFlow's own tests",
        help: "remove it",
        code: OP,
        names: "Fact Old KernelLabel KernelLabelRequired ConstructionFails TestAttr DevicePlacementOp DtypeWithDefaultOp \
               GraphDefVersion ResourceCreateOp ResourceInitializedOp ResourceUsingOp StubResourceHandleOp",
    },
    UnsupportedOps {
        title: "Training outside of gradients",
        reason: "it trains a model by itself, with state or examples that are not tensors",
        help: "train in TensorFlow",
        code: OP,
        names: "SdcaOptimizer* SdcaShrinkL1 NegTrain",
    },
    UnsupportedOps {
        title: "Stores of sparse tensors",
        reason: "it keeps sparse tensors in a store outside of the graph",
        help: "feed the sparse tensors",
        code: OP,
        names: "AddManySparseToTensorsMap AddSparseToTensorsMap TakeManySparseFromTensorsMap",
    },
    UnsupportedOps {
        title: "Several devices",
        reason: "it cuts or joins what lies on several devices, and parts are cut and joined by whoever calls the code",
        help: "call the code with each device's part",
        code: OP,
        names: "AssignVariableXlaConcatND ReadVariableXlaSplitND XlaSpmdFullToShardShape XlaSpmdShardToFullShape",
    },
    UnsupportedOps {
        title: "The host in the middle of a call",
        reason: "it hands a tensor to the host, or takes one, in the middle of a call",
        help: "make it a result, or feed it",
        code: OP,
        names: "XlaRecv XlaSend",
    },
    UnsupportedOps {
        title: "StochasticCastToInt",
        reason: "TensorFlow's kernel draws as many numbers as its vectors are long and XLA draws others, so that there is no one answer",
        help: "feed its result",
        code: OP,
        names: "StochasticCastToInt",
    },
    UnsupportedOps {
        title: "SymbolicGradient",
        reason: "TensorFlow writes the gradient of the function when the graph runs; no file has it",
        help: "write the gradient into the model, with `tf.GradientTape` or `tf.gradients`",
        code: OP,
        names: "SymbolicGradient",
    },
    UnsupportedOps {
        title: "TileGrad",
        reason: "TensorFlow's own kernel asks for an attribute that the op does not have",
        help: "reshape and sum, as the gradient of `tf.tile` does",
        code: OP,
        names: "TileGrad",
    },
    UnsupportedOps {
        title: "XlaIf",
        reason: "TensorFlow's own kernel asks for an attribute that the op does not have: `If` is supported",
        help: "export with `tf.cond`",
        code: OP,
        names: "XlaIf",
    },
    UnsupportedOps {
        title: "XlaRemoveDynamicDimensionSize",
        reason: "it gives what is behind the elements of an array of a size that varies, and nothing is there",
        help: "slice the array to its size",
        code: OP,
        names: "XlaRemoveDynamicDimensionSize",
    },
    UnsupportedOps {
        title: "Kernels of oneDNN",
        reason: "only oneDNN computes it, into whose ops TensorFlow rewrites graphs when they run; the kernel of its own does nothing",
        help: "export the model before its ops are fused for oneDNN",
        code: OP,
        names: "QuantizedConv2D* QuantizedDepthwiseConv2D* QuantizedMatMulWithBias* QuantizedConcatV2",
    },
    UnsupportedOps {
        title: "CTCLossV2",
        reason: "TensorFlow has a kernel for it on GPUs alone",
        help: "export on a machine without one, where `tf.nn.ctc_loss` is made of other ops",
        code: OP,
        names: "CTCLossV2",
    },
    UnsupportedOps {
        title: "Withdrawn by TensorFlow",
        reason: "TensorFlow withdrew it years ago and refuses it in a graph that is written today",
        help: "export the model again with TensorFlow 2, which writes another op in its place",
        code: OP,
        names: "AdjustContrast BatchNormWithGlobalNormalizationGrad Conv3DBackpropFilter Conv3DBackpropInput QuantizeAndDequantize RandomCrop StatefulStandardNormal",
    },
    UnsupportedOps {
        title: "Not written yet",
        reason: "nothing but the work to write it stands in its way",
        help: "feed its result, or write the same with other ops; `tfaot ops` lists those that are supported",
        code: OP,
        names: include_str!("unsupported_ops/unwritten.txt"),
    },
];

impl UnsupportedOps {
    /// Whether an op is listed by its full name.
    fn names_whole(&self, op: &str) -> bool {
        self.names.split_whitespace().any(|name| name == op)
    }
    /// Whether an op matches a pattern with a `*`.
    fn names_part(&self, op: &str) -> bool {
        let fits = |name: &str| match (name.strip_prefix('*'), name.strip_suffix('*')) {
            (Some(_), Some(_)) => op.contains(name.trim_matches('*')),
            (Some(end), None) => op.ends_with(end),
            (None, Some(start)) => op.starts_with(start),
            (None, None) => false,
        };
        self.names.split_whitespace().any(fits)
    }
}

/// Reason why an op has no lowering, if listed.
pub fn unsupported_reason(op: &str) -> Option<&'static UnsupportedOps> {
    let whole = UNSUPPORTED_OPS.iter().find(|reason| reason.names_whole(op));
    whole.or_else(|| UNSUPPORTED_OPS.iter().find(|reason| reason.names_part(op)))
}

#[cfg(test)]
mod tests {
    use super::{UNSUPPORTED_OPS, unsupported_reason};
    use crate::{opdef, ops};

    #[test]
    fn every_op_with_a_kernel_has_a_row_or_a_reason() {
        let without =
            opdef::all_defs().into_iter().filter(|def| def.cpu_host_args.is_some() && ops::find_op(def.name).is_none());
        let unexplained: Vec<&str> =
            without.map(|def| def.name).filter(|op| unsupported_reason(op).is_none()).collect();
        assert!(unexplained.is_empty(), "no row and no reason: {unexplained:?}");
    }

    #[test]
    fn what_is_left_out_has_no_row() {
        let names =
            UNSUPPORTED_OPS.iter().flat_map(|reason| reason.names.split_whitespace()).filter(|n| !n.contains('*'));
        let wrong: Vec<&str> = names.filter(|op| ops::find_op(op).is_some() || opdef::find_def(op).is_none()).collect();
        assert!(wrong.is_empty(), "with a row, or no op of TensorFlow: {wrong:?}");
    }

    #[test]
    fn whole_names_go_before_parts_of_names() {
        let title = |op: &str| unsupported_reason(op).map(|reason| reason.title);
        assert_eq!(title("InitializeTableFromTextFileV2"), Some("Files and checkpoints"));
        assert_eq!(title("MapDataset"), Some("Input pipelines"));
        assert_eq!(title("MapClear"), Some("Queues, barriers and stages"));
        assert_eq!(title("NoSuchOp"), None);
    }
}
