//! The flags of `TF_XLA_FLAGS`: a list apart by blanks, `--name=value` or `--name`.
//!
//! All names that TensorFlow 2.21 knows are known; those that do not touch clustering are taken and left alone. A name that
//! TensorFlow would refuse is a warning with the nearest known name.

/// The jit level, as far as the pass cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitLevel {
    /// No clustering but for nodes that ask for it.
    Off,
    /// `ON_1` and `ON_2`, which clustering does not tell apart.
    On,
}

/// TensorFlow's flags of the clustering pass.
#[derive(Clone, Debug)]
pub struct ClusteringFlags {
    /// Whether `--tf_xla_auto_jit` was given a value; 0 is one, and leaves the level to the session.
    pub level_is_said: bool,
    /// `--tf_xla_auto_jit`: the level for graphs with exactly one GPU; `None`: not overridden.
    pub single_gpu: Option<JitLevel>,
    /// The level for all other graphs; `None`: not overridden.
    pub general: Option<JitLevel>,
    /// `--tf_xla_cpu_global_jit`: the level holds for the CPU too; `None`: not said.
    pub cpu_global_jit: Option<bool>,
    /// `--tf_xla_min_cluster_size`: effective nodes of a cluster that is kept.
    pub min_cluster_size: i64,
    /// `--tf_xla_max_cluster_size`: nodes that a cluster may grow to.
    pub max_cluster_size: i64,
    /// `--tf_xla_ops_to_cluster`: the allow list, groups and ops.
    pub ops_to_cluster: String,
    /// `--tf_xla_cluster_exclude_ops`.
    pub exclude_ops: String,
    /// `--tf_xla_clustering_debug`: dump graphs.
    pub debug: bool,
    /// `--tf_xla_clustering_fuel`: candidates that may still be taken.
    pub fuel: i64,
    /// `--tf_xla_disable_deadness_safety_checks_for_debugging`.
    pub ignore_deadness: bool,
    /// `--tf_xla_disable_resource_variable_safety_checks_for_debugging`.
    pub ignore_resources: bool,
    /// `--tf_xla_deterministic_cluster_names`.
    pub deterministic_names: bool,
    /// `--tf_xla_enable_xla_devices`.
    pub xla_devices: bool,
    /// `--tf_xla_compile_on_demand`.
    pub compile_on_demand: bool,
}

impl Default for ClusteringFlags {
    fn default() -> Self {
        ClusteringFlags {
            level_is_said: false,
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

/// Flags that TensorFlow takes and that do not change clusters.
const OTHER: &[&str] = &[
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

/// Flags that are read here.
const OURS: &[&str] = &[
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
    /// Reads `text`, later flags over earlier ones; returns what is wrong with it, a sentence each. A `;` ends the text: what
    /// follows it in a shell's or a log's line is none of the flags.
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
            "tf_xla_auto_jit" => return self.auto_jit(value.unwrap_or("")),
            "tf_xla_cpu_global_jit" => self.cpu_global_jit = Some(truth(name, value)?),
            "tf_xla_min_cluster_size" => self.min_cluster_size = number(name, value)?,
            "tf_xla_max_cluster_size" => self.max_cluster_size = number(name, value)?,
            "tf_xla_ops_to_cluster" => self.ops_to_cluster = value.unwrap_or("").to_string(),
            "tf_xla_cluster_exclude_ops" => self.exclude_ops = value.unwrap_or("").to_string(),
            "tf_xla_clustering_debug" => self.debug = truth(name, value)?,
            "tf_xla_clustering_fuel" => self.fuel = number(name, value)?,
            "tf_xla_disable_deadness_safety_checks_for_debugging" => self.ignore_deadness = truth(name, value)?,
            "tf_xla_disable_resource_variable_safety_checks_for_debugging" => {
                self.ignore_resources = truth(name, value)?
            }
            "tf_xla_deterministic_cluster_names" => self.deterministic_names = truth(name, value)?,
            "tf_xla_enable_xla_devices" => self.xla_devices = truth(name, value)?,
            "tf_xla_compile_on_demand" => self.compile_on_demand = truth(name, value)?,
            other if OTHER.contains(&other) => {}
            other => return Err(unknown(other)),
        }
        Ok(())
    }

    /// `-1`, `0`, `1`, `2`, `fusible`, `single-gpu(N)`.
    fn auto_jit(&mut self, value: &str) -> Result<(), String> {
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
        self.level_is_said = true;
        Ok(())
    }
}

fn truth(name: &str, value: Option<&str>) -> Result<bool, String> {
    match value {
        None | Some("true" | "True" | "1") => Ok(true),
        Some("false" | "False" | "0") => Ok(false),
        Some(other) => Err(format!("--{name} takes true or false, and gets `{other}`")),
    }
}

fn number(name: &str, value: Option<&str>) -> Result<i64, String> {
    let text = value.unwrap_or("");
    text.parse().map_err(|_| format!("--{name} takes a whole number, and gets `{text}`"))
}

fn unknown(name: &str) -> String {
    let nearest = OURS.iter().chain(OTHER).min_by_key(|known| distance(name, known));
    let nearest = nearest.map_or(String::new(), |n| format!("; the nearest is --{n}"));
    format!("TensorFlow has no flag `--{name}`{nearest}")
}

/// The number of letters to insert, delete or change.
fn distance(a: &str, b: &str) -> usize {
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
        assert!(!f.level_is_said);
        assert_eq!(f.parse("--tf_xla_auto_jit=0"), Vec::<String>::new());
        assert_eq!((f.level_is_said, f.single_gpu, f.general), (true, None, None));
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
