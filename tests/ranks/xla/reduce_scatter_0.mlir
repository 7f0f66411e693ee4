module @reduce_scatter attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {
  func.func public @main(%x: tensor<1x8x5xf32> {mhlo.sharding = "{manual}"}) -> (tensor<1x2x5xf32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}) {
    %y = "stablehlo.reduce_scatter"(%x) <{replica_groups = dense<[[2, 0, 1, 3]]> : tensor<1x4xi64>, scatter_dimension = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.minimum %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
  }) {mhlo.sharding = "{manual}"} : (tensor<1x8x5xf32>) -> tensor<1x2x5xf32>
    %r = stablehlo.replica_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    %p = stablehlo.partition_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    return %y, %r, %p : tensor<1x2x5xf32>, tensor<ui32>, tensor<ui32>
  }
}
