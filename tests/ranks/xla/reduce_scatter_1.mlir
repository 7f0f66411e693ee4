module @reduce_scatter attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {
  func.func public @main(%x: tensor<2xf64> {mhlo.sharding = "{manual}"}) -> (tensor<2xf64> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}) {
    %y = "stablehlo.reduce_scatter"(%x) <{replica_groups = dense<[[2], [0], [1], [3]]> : tensor<4x1xi64>, scatter_dimension = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f64>, %b: tensor<f64>):
      %c = stablehlo.maximum %a, %b : tensor<f64>
      stablehlo.return %c : tensor<f64>
  }) {mhlo.sharding = "{manual}"} : (tensor<2xf64>) -> tensor<2xf64>
    %r = stablehlo.replica_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    %p = stablehlo.partition_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    return %y, %r, %p : tensor<2xf64>, tensor<ui32>, tensor<ui32>
  }
}
