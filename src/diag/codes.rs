//! The table of diagnostic codes: number, slug, meaning, usual remedy.

/// The definition of a diagnostic code, for `tfaot explain` and `docs/diagnostics.md`.
#[derive(Debug)]
pub struct CodeRow {
    /// The code of the row.
    pub code: Code,
    /// The number in `TFA0123`.
    pub number: u16,
    /// Kebab-case name of the code.
    pub slug: &'static str,
    /// The meaning of the code, in whole sentences.
    pub about: &'static str,
    /// The usual remedy.
    pub cure: &'static str,
}

macro_rules! codes {
    ($($variant:ident $number:literal $slug:literal $about:literal $cure:literal;)*) => {
        /// A stable diagnostic code, such as TFA0101.
        ///
        /// ```
        /// use tfaot::Code;
        ///
        /// let row = Code::parse("TFA0101").expect("it is a code");
        /// assert_eq!((row.code, row.slug), (Code::UnsupportedOp, "unsupported-op"));
        /// println!("{} What helps: {}", row.about, row.cure);
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $(#[doc = $about] $variant,)* }
        /// Every code, by number.
        pub const CODES: &[CodeRow] = &[$(CodeRow { code: Code::$variant, number: $number, slug: $slug, about: $about, cure: $cure },)*];
    };
}

codes! {
    Io 1 "io" "A file could not be read or written." "Check the path and its permissions.";
    UnknownFormat 2 "unknown-format" "The file is not of a kind that tfaot reads." "Give a GraphDef, a SavedModel folder, a TF.js model.json or HLO text; --format forces a format.";
    BadEncoding 3 "bad-encoding" "The bytes are not a valid file of the format that they seem to be." "The file is damaged or cut short; export it again.";
    BadGraph 4 "bad-graph" "The graph breaks a rule that every TensorFlow graph keeps: unique names, inputs that exist, no cycles." "Export the graph again; a graph made by hand may have a dangling input.";
    TooLarge 5 "too-large" "A size is negative, overflows, or is beyond what this machine could hold." "Check the dimensions that are fed.";
    UnknownTensor 6 "unknown-tensor" "A feed, fetch or configuration names a tensor that the graph does not have." "tfaot inspect lists the names.";
    BadOption 7 "bad-option" "An option's value can't be used with this graph." "Read the message; tfaot VERB --help lists the forms.";
    BadInputs 8 "bad-inputs" "The input arrays do not fit the graph's feeds." "Give each feed an array of its dtype and shape.";
    UnknownDim 9 "unknown-dim" "A dimension of a feed is not known, and code is compiled for fixed shapes." "Bind it with --feed NAME=f32[1,224,224,3] or --dim NAME=N.";
    WhichSignature 10 "which-signature" "The model has several signatures, none of them is `serving_default`, and none was asked for; or it has none at all." "--signature NAME takes one; tfaot inspect lists their inputs and outputs.";
    CheckFailed 11 "check-failed" "Compiled code was asked to check its values (--checked), and a check failed: the message names the node and what is wrong. TensorFlow's kernels fail there too." "Give inputs that the node takes.";
    UnsupportedOp 101 "unsupported-op" "The op has no lowering." "Feed the op's result instead, or remove the op from the graph; tfaot ops lists what is supported.";
    UnsupportedCase 102 "unsupported-case" "The op is supported, but not with this dtype, attribute or shape." "The message says what is supported.";
    UnsupportedType 103 "unsupported-type" "The type can't live in compiled code: strings, resources and variants have no HLO type." "Feed the tensors that are computed from it.";
    ShapeMismatch 104 "shape-mismatch" "The shapes of an op's inputs do not fit each other." "Check the shapes that are fed.";
    TypeMismatch 105 "type-mismatch" "The types of an op's inputs do not fit the op or each other." "Check the types that are fed.";
    NotConstant 106 "not-constant" "The op needs the value of this input at compile time, and it depends on what is fed." "Say what is fed when you compile (--feed NAME=0.5, --feed NAME={1,2}), or feed what is computed from it.";
    BadAttr 107 "bad-attr" "An attribute is missing or has a value that the op forbids." "The graph was damaged or made by a newer TensorFlow.";
    DynamicShape 108 "dynamic-shape" "The shape of the result depends on values that are only known at run time." "Feed the result instead, or bound its size.";
    BadFunction 109 "bad-function" "A function is missing from the library, calls itself, or has another signature than its caller expects." "Export the graph again.";
    ControlFlowV1 110 "control-flow-v1" "The control flow of TensorFlow 1 (Switch, Merge, Enter, Exit, NextIteration) is of a form that no `While` and `If` has, such as loops that cross." "The message names the loop; export with control flow v2 (TensorFlow 2 does by default).";
    VariableAssigned 111 "variable-assigned" "What is fetched needs a node that assigns to a variable; compiled code has no state from one call to the next." "Fetch what does not assign, or give the state as a feed and take it back as a fetch.";
    VariableWithoutValue 112 "variable-without-value" "What is fetched reads a variable, and the file has no value of it: a graph alone has none, and a SavedModel's checkpoint may leave one out." "Save the model with its variables: `model.export(folder)` in Keras, `tf.saved_model.save` of the object that holds them, or freeze the graph.";
    OpenSize 113 "open-size" "A size was left open up to a bound, and the graph does something with it that no code for every size is known for: it takes other steps for other sizes, or computes over an axis that varies in a way that padding would change." "Give the size as a number, or narrower bounds: --dim NAME=2..64.";
    TableContents 114 "table-contents" "What is fetched looks something up in a table, and what the table holds is not known: nothing in the file fills it, it is filled from a text file, with strings or with what is computed, or with two values for one key." "Save the model with `tf.saved_model.save`, which keeps what fills its tables; fill tables with constants.";
    EffectDropped 120 "effect-dropped" "Compiled code computes results and does nothing else: nodes that print, assert, write summaries or files, call Python, or use queues, tables or other devices, and whose results nothing needs, are left out. It is a warning." "Do it outside of compiled code; fetch what it needs.";
    HloSyntax 201 "hlo-syntax" "The HLO text can't be parsed." "The message has the line and the column.";
    HloInvalid 202 "hlo-invalid" "The HLO module breaks a rule of the verifier." "The message has the instruction and the rule.";
    HloUnsupported 203 "hlo-unsupported" "The HLO opcode is read and verified, but can't be run or compiled." "tfaot hlo eval handles more than tfaot hlo run.";
    StepLimit 204 "step-limit" "The loops of a module take more steps than the interpreter was allowed." "The loop may have no end; --max-steps allows more.";
    SeveralDevices 205 "several-devices" "The HLO module is for several replicas or partitions, and one device was to run it; or for another number than was asked for." "`tfaot hlo run --replicas N` runs it on so many; code that `tfaot compile` makes is run by as many ranks, as docs/replicas.md tells.";
    NoBody 206 "no-body" "The module calls a C function of the user, whose body is not here: only a program that is linked with it can run the code." "Compile, and link the object with the C file that defines the function; the header has its prototype.";
    RankFailed 207 "rank-failed" "One of several devices failed, has an array of another size, or is somewhere else in the module, so that the others wait for it in vain." "All devices of a group come to the same collectives in the same order: conditions of loops and branches around them are equal on each.";
    NoLinker 301 "no-linker" "A shared library is needed and no linker was found." "Install lld or a C compiler.";
    UnknownTarget 302 "unknown-target" "Code is not made for this target, processor or feature, or the processor lacks an instruction that the model needs." "tfaot targets lists them.";
    NameClash 303 "name-clash" "Two names become the same C identifier." "Give names in --config.";
    NoBf16Math 304 "no-bf16-math" "Products of bfloat16 were asked for, and the target has no instruction for them." "Choose a processor with AVX512-BF16, or an AArch64 one with bfdot, by --cpu or --features; --weights bf16 works on every target.";
    OtherWeights 305 "other-weights" "A file of weights was asked for, and the graph does not fit the object that it would be for: it has other operations, types or sizes, other numbers that stand in the code (scalars), or two arrays that shared a place differ; or the metadata are not of an object that takes weights from a file, or of another version of tfaot." "Compile this graph with --weights-file; weights can be replaced where only numbers of arrays differ.";
    Mismatch 401 "mismatch" "Two engines, or the code and the expected answer, differ by more than the bound." "The message names the output and the element.";
    AlreadyClustered 501 "already-clustered" "A node carries _XlaAlreadyClustered, or the graph runs on TPUs: TensorFlow's pass leaves such a graph alone." "Cluster the graph before it was marked; remove the attribute.";
    LoopsCross 502 "loops-cross" "Frames of TensorFlow 1's loops feed each other in a circle, and TensorFlow's pass forms no clusters in such a graph." "Export with control flow v2.";
    ClusteringOff 503 "clustering-off" "The flags or the session switch clustering off for the device, and the node does not ask for it." "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit switch it on.";
    XlaCompileFalse 504 "xla-compile-false" "The attribute _XlaCompile of the node or its function is false." "Remove the attribute.";
    NoCompilationDevice 505 "no-compilation-device" "XLA compiles for CPUs and GPUs, and the node is placed on another device." "Place the node on a CPU or a GPU.";
    FuelSpent 506 "fuel-spent" "--tf_xla_clustering_fuel allows no more candidates." "Give more fuel.";
    GraphArgument 507 "graph-argument" "Arguments and results of a graph are in no cluster." "Nothing: clusters start behind them.";
    NoXlaKernel 508 "no-xla-kernel" "XLA has no kernel for the op, so it runs outside of clusters." "Replace the op by one that XLA has, or move it to the edge of the graph.";
    NoXlaType 509 "no-xla-type" "XLA has a kernel for the op, but not for this type." "The message lists the types; cast before the op.";
    ReferenceInput 510 "reference-input" "An input is a reference to a variable of TensorFlow 1." "Use resource variables, or freeze the graph.";
    FunctionNotCompilable 511 "function-not-compilable" "A function that the node calls holds a node that XLA can't compile." "The message names the node; change it, or let the function be inlined.";
    StatefulRandom 512 "stateful-random" "The op draws numbers from a generator of its own, whose state compiled code does not have." "Use the stateless random ops.";
    EffectKept 513 "effect-kept" "The op has an effect, such as an assertion, that compiled code would drop or can't have." "Remove it, or move it out of the hot part of the graph.";
    VariantTensor 514 "variant-tensor" "The op takes or returns a variant, such as a TensorList, which clusters can't hold." "A loop that is compiled as a whole keeps its lists inside.";
    StackOrTensorArray 515 "stack-or-tensor-array" "Stacks and TensorArrays of TensorFlow 1 are not clustered." "Export with control flow v2.";
    ResourceInFunction 516 "resource-in-function" "A function uses a variable; variables are used at the top of a cluster only." "Let the function be inlined.";
    SlowUnderXla 517 "slow-under-xla" "XLA's code for the op is slow or inaccurate, so TensorFlow does not cluster it." "Nothing: TensorFlow's own kernel is faster.";
    NotInAllowList 518 "not-in-allow-list" "The op is not in --tf_xla_ops_to_cluster." "Add it to the list.";
    StatefulConstant 519 "stateful-constant" "Another op needs the node's value when it is compiled, and the node is stateful." "Make the value a constant.";
    LoopConstant 520 "loop-constant" "An identity that holds back the constants of a loop stays outside." "Nothing: it would cost more inside.";
    ClusterTooSmall 521 "cluster-too-small" "The cluster has fewer effective nodes than --tf_xla_min_cluster_size; constants and identities do not count." "Lower the flag.";
    Declustered 522 "declustered" "The node was in a cluster and was taken out again, as it would cost more inside." "Nothing.";
    NotFetched 523 "not-fetched" "TensorFlow removes nodes that no fetch needs before it clusters." "Fetch what the node computes.";
    ExpandedNode 524 "expanded-node" "A call was inlined or control flow was lowered before clustering, as TensorFlow does." "Look at the nodes that it became.";
    LeftOut 525 "left-out" "Clusters were formed without the node because the caller asked so: it is fed, or could not be compiled." "tfaot rewrite --mode native says why a node can't be compiled.";
    OwnCluster 526 "own-cluster" "The node calls a function that is marked with jit_compile=True, and the pass would not cluster it: TensorFlow compiles it whole when it is called, as a cluster of its own." "Nothing: it is compiled.";
    DeadnessDiffers 531 "deadness-differs" "Two nodes live and die under different conditions, so they can't be one call." "Move the nodes to the same side of the condition.";
    DevicesDiffer 532 "devices-differ" "Two nodes are on devices that one cluster can't span." "Place them on one device.";
    ScopesDiffer 533 "scopes-differ" "Two nodes carry different XLA scopes, as behind Stage and Unstage." "Remove the scopes.";
    ClusterTooLarge 534 "cluster-too-large" "Two clusters together would be larger than --tf_xla_max_cluster_size." "Raise the flag.";
    CrossDevice 535 "cross-device" "The cluster would have to wait for another device." "Place the nodes on one device.";
    ResourceOrder 536 "resource-order" "A cluster reads its variables first and writes them last; these two operations would lose their order." "Read before writing.";
    WouldCycle 537 "would-cycle" "A way outside leads from one cluster to the other; as one they would wait for themselves." "Remove what blocks the nodes on the way.";
    Internal 901 "internal" "An invariant of tfaot is broken." "Please report it.";
}

impl Code {
    /// The row of the table for this code.
    pub fn row(self) -> &'static CodeRow {
        CODES.iter().find(|r| r.code == self).expect("the macro makes a row for each variant")
    }
    /// The code as users see it: `TFA0123`.
    pub fn id(self) -> String {
        format!("TFA{:04}", self.row().number)
    }
    /// The row for `TFA0123`, `123` or a slug; `None` if there is no such code.
    pub fn parse(text: &str) -> Option<&'static CodeRow> {
        let digits = text.trim_start_matches("TFA").trim_start_matches("tfa");
        CODES.iter().find(|r| r.slug == text || digits.parse() == Ok(r.number))
    }
}
