//! The flags of the environment variable `TF_XLA_FLAGS`, separated by blanks: `--name=value` or `--name`.
//!
//! All flags of TensorFlow 2.21 are accepted; those that do not affect clustering are ignored. A name that TensorFlow would refuse
//! gives a warning with the nearest known name.

/// The jit level, as far as clustering distinguishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitLevel {
    /// Only nodes that request compilation are clustered.
    Off,
    /// `ON_1` and `ON_2`, which clustering treats alike.
    On,
}

/// TensorFlow's flags of the clustering pass.
#[derive(Clone, Debug)]
pub struct ClusteringFlags {
    /// Whether `--tf_xla_auto_jit` was given. The value 0 counts, although it leaves the level to the session.
    pub auto_jit_given: bool,
    /// `--tf_xla_auto_jit`: the level for graphs with exactly one GPU; `None`: not overridden.
    pub single_gpu: Option<JitLevel>,
    /// Auto-clustering level of graphs without a GPU or with several; `None`: not overridden.
    pub general: Option<JitLevel>,
    /// `--tf_xla_cpu_global_jit`: whether the jit level applies to the CPU too; `None`: not given.
    pub cpu_global_jit: Option<bool>,
    /// `--tf_xla_min_cluster_size`: minimum number of effective nodes of a cluster.
    pub min_cluster_size: i64,
    /// `--tf_xla_max_cluster_size`: maximum number of nodes of a cluster.
    pub max_cluster_size: i64,
    /// `--tf_xla_ops_to_cluster`: allow list of ops and groups of ops, separated by commas.
    pub ops_to_cluster: String,
    /// `--tf_xla_cluster_exclude_ops`: ops that stay outside of clusters, separated by commas.
    pub exclude_ops: String,
    /// `--tf_xla_clustering_debug`: whether TensorFlow dumps graphs.
    pub debug: bool,
    /// `--tf_xla_clustering_fuel`: number of candidates that may be clustered.
    pub fuel: i64,
    /// `--tf_xla_disable_deadness_safety_checks_for_debugging`: whether deadness is ignored.
    pub ignore_deadness: bool,
    /// `--tf_xla_disable_resource_variable_safety_checks_for_debugging`: whether the order of resource operations is ignored.
    pub ignore_resources: bool,
    /// `--tf_xla_deterministic_cluster_names`: whether cluster names begin with a fingerprint of the graph.
    pub deterministic_names: bool,
    /// `--tf_xla_enable_xla_devices`: whether the devices `XLA_CPU` and `XLA_GPU` exist.
    pub xla_devices: bool,
    /// `--tf_xla_compile_on_demand`: whether ops on XLA devices are compiled one by one.
    pub compile_on_demand: bool,
}

impl Default for ClusteringFlags {
    fn default() -> Self {
        ClusteringFlags {
            auto_jit_given: false,
            single_gpu: None,
            general: None,
            cpu_global_jit: None,
            min_cluster_size: 4,
            max_cluster_size: i64::from(i32::MAX),
            ops_to_cluster: String::new(),
            exclude_ops: String::new(),
            debug: false,
            fuel: i64::MAX,
            ignore_deadness: false,
            ignore_resources: false,
            deterministic_names: false,
            xla_devices: false,
            compile_on_demand: false,
        }
    }
}

/// Flags that TensorFlow accepts and that do not affect clustering.
const IGNORED_FLAGS: &[&str] = &[
    "tf_xla_persistent_cache_directory",
    "tf_xla_persistent_cache_device_types",
    "tf_xla_persistent_cache_read_only",
    "tf_xla_persistent_cache_prefix",
    "tf_xla_disable_strict_signature_checks",
    "tf_xla_enable_lazy_compilation",
    "tf_xla_print_cluster_outputs",
    "tf_xla_check_cluster_input_numerics",
    "tf_xla_check_cluster_output_numerics",
    "tf_xla_disable_constant_folding",
    "tf_xla_disable_full_embedding_pipelining",
    "tf_xla_disable_full_embedding_pipelining_with_summaries",
    "tf_xla_embedding_parallel_iterations",
    "tf_xla_always_defer_compilation",
    "tf_xla_async_compilation",
    "tf_xla_use_device_api",
    "tf_xla_use_device_api_for_xla_launch",
    "tf_xla_use_device_api_for_compile_on_demand",
    "tf_xla_use_device_api_for_auto_jit",
    "tf_xla_enable_device_api_for_gpu",
    "tf_xla_call_module_disabled_checks",
    "tf_mlir_enable_mlir_bridge",
    "tf_mlir_enable_merge_control_flow_pass",
    "tf_mlir_enable_convert_control_to_data_outputs_pass",
    "tf_mlir_composite_tpuexecute_side_effects",
    "tf_mlir_enable_strict_clusters",
    "tf_mlir_enable_multiple_local_cpu_devices",
    "tf_mlir_enable_debug_info_serialization",
    "tf_mlir_enable_tpu_variable_runtime_reformatting_pass",
    "tf_dump_graphs_in_tfg",
    "tf_xla_sparse_core_disable_table_stacking",
    "tf_xla_sparse_core_minibatch_max_division_level",
    "tf_xla_sparse_core_stacking_mem_limit_bytes",
    "tf_xla_sparse_core_stacking_table_shard_limit_bytes",
];

/// Flags that affect clustering or dumps.
const CLUSTERING_FLAGS: &[&str] = &[
    "tf_xla_auto_jit",
    "tf_xla_cpu_global_jit",
    "tf_xla_min_cluster_size",
    "tf_xla_max_cluster_size",
    "tf_xla_ops_to_cluster",
    "tf_xla_cluster_exclude_ops",
    "tf_xla_clustering_debug",
    "tf_xla_clustering_fuel",
    "tf_xla_disable_deadness_safety_checks_for_debugging",
    "tf_xla_disable_resource_variable_safety_checks_for_debugging",
    "tf_xla_deterministic_cluster_names",
    "tf_xla_enable_xla_devices",
    "tf_xla_compile_on_demand",
];

impl ClusteringFlags {
    /// Parses `text`, where later flags override earlier ones; returns the warnings, a sentence each. The flags end at a `;`, as what
    /// follows in a line of a shell or a log belongs to something else.
    pub fn parse(&mut self, text: &str) -> Vec<String> {
        let mut warnings = Vec::new();
        let (text, rest) = text.split_once(';').unwrap_or((text, ""));
        if !rest.trim().is_empty() {
            warnings.push(format!("what follows `;` in the flags is left out: `{}`", rest.trim()));
        }
        for word in text.split_whitespace() {
            let Some(flag) = word.strip_prefix("--") else {
                warnings.push(format!("`{word}` is no flag: flags are --name or --name=value"));
                continue;
            };
            let (name, value) = flag.split_once('=').map_or((flag, None), |(n, v)| (n, Some(v)));
            if let Err(what) = self.set(name, value) {
                warnings.push(what);
            }
        }
        warnings
    }

    fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), String> {
        match name {
            "tf_xla_auto_jit" => return self.set_auto_jit(value.unwrap_or("")),
            "tf_xla_cpu_global_jit" => self.cpu_global_jit = Some(parse_bool(name, value)?),
            "tf_xla_min_cluster_size" => self.min_cluster_size = parse_integer(name, value)?,
            "tf_xla_max_cluster_size" => self.max_cluster_size = parse_integer(name, value)?,
            "tf_xla_ops_to_cluster" => self.ops_to_cluster = value.unwrap_or("").to_string(),
            "tf_xla_cluster_exclude_ops" => self.exclude_ops = value.unwrap_or("").to_string(),
            "tf_xla_clustering_debug" => self.debug = parse_bool(name, value)?,
            "tf_xla_clustering_fuel" => self.fuel = parse_integer(name, value)?,
            "tf_xla_disable_deadness_safety_checks_for_debugging" => self.ignore_deadness = parse_bool(name, value)?,
            "tf_xla_disable_resource_variable_safety_checks_for_debugging" => {
                self.ignore_resources = parse_bool(name, value)?
            }
            "tf_xla_deterministic_cluster_names" => self.deterministic_names = parse_bool(name, value)?,
            "tf_xla_enable_xla_devices" => self.xla_devices = parse_bool(name, value)?,
            "tf_xla_compile_on_demand" => self.compile_on_demand = parse_bool(name, value)?,
            other if IGNORED_FLAGS.contains(&other) => {}
            other => return Err(unknown_flag_message(other)),
        }
        Ok(())
    }

    /// Parses `-1`, `0`, `1`, `2`, `fusible` or `single-gpu(N)`.
    fn set_auto_jit(&mut self, value: &str) -> Result<(), String> {
        let level = |text: &str| match text.parse::<i32>() {
            Ok(0) => Ok(None),
            Ok(n) if n < 0 => Ok(Some(JitLevel::Off)),
            Ok(_) => Ok(Some(JitLevel::On)),
            Err(_) => Err(format!("--tf_xla_auto_jit takes -1, 0, 1, 2, fusible or single-gpu(N), and gets `{value}`")),
        };
        if value == "fusible" {
            self.single_gpu = Some(JitLevel::On);
            self.general = Some(JitLevel::On);
            self.ops_to_cluster = "FUSIBLE".to_string();
        } else if let Some(inner) = value.strip_prefix("single-gpu(").and_then(|v| v.strip_suffix(')')) {
            self.single_gpu = level(inner)?;
            self.general = None;
        } else {
            self.single_gpu = level(value)?;
            self.general = self.single_gpu;
        }
        self.auto_jit_given = true;
        Ok(())
    }
}

fn parse_bool(name: &str, value: Option<&str>) -> Result<bool, String> {
    match value {
        None | Some("true" | "True" | "1") => Ok(true),
        Some("false" | "False" | "0") => Ok(false),
        Some(other) => Err(format!("--{name} takes true or false, and gets `{other}`")),
    }
}

fn parse_integer(name: &str, value: Option<&str>) -> Result<i64, String> {
    let text = value.unwrap_or("");
    text.parse().map_err(|_| format!("--{name} takes a whole number, and gets `{text}`"))
}

fn unknown_flag_message(name: &str) -> String {
    let nearest = CLUSTERING_FLAGS.iter().chain(IGNORED_FLAGS).min_by_key(|known| edit_distance(name, known));
    let nearest = nearest.map_or(String::new(), |n| format!("; the nearest is --{n}"));
    format!("TensorFlow has no flag `--{name}`{nearest}")
}

/// Edit distance: the number of letters to insert, delete or change.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(256).enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let change = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_as_tensorflow_reads_them() {
        let mut f = ClusteringFlags::default();
        let told = f.parse(
            "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=1 --tf_xla_async_compilation",
        );
        assert_eq!(told, Vec::<String>::new());
        assert_eq!((f.general, f.cpu_global_jit, f.min_cluster_size), (Some(JitLevel::On), Some(true), 1));
        f.parse("--tf_xla_auto_jit=single-gpu(1)");
        assert_eq!((f.single_gpu, f.general), (Some(JitLevel::On), None));
        f.parse("--tf_xla_auto_jit=fusible");
        assert_eq!(f.ops_to_cluster, "FUSIBLE");
    }

    #[test]
    fn level_0_is_said_and_overrides_nothing() {
        let mut f = ClusteringFlags::default();
        assert!(!f.auto_jit_given);
        assert_eq!(f.parse("--tf_xla_auto_jit=0"), Vec::<String>::new());
        assert_eq!((f.auto_jit_given, f.single_gpu, f.general), (true, None, None));
    }

    #[test]
    fn a_wrong_flag_is_told_with_the_nearest() {
        let mut f = ClusteringFlags::default();
        let told = f.parse("--tf_xla_min_cluster_sise=3 --tf_xla_max_cluster_size=5; and words");
        assert!(told.iter().any(|w| w.contains("--tf_xla_min_cluster_size")), "{told:?}");
        assert_eq!(told.len(), 2);
        assert_eq!(f.max_cluster_size, 5);
        assert_eq!(f.parse("--tf_xla_clustering_fuel=lots").len(), 1);
    }
}
