module @all_reduce attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32} {
  func.func public @main(%x: tensor<33x2x4xf32> {mhlo.sharding = "{manual}"}) -> (tensor<33x2x4xf32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}) {
    %y = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0], [1]]> : tensor<2x1xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.minimum %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
  }) {mhlo.sharding = "{manual}"} : (tensor<33x2x4xf32>) -> tensor<33x2x4xf32>
    %r = stablehlo.replica_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    %p = stablehlo.partition_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    return %y, %r, %p : tensor<33x2x4xf32>, tensor<ui32>, tensor<ui32>
  }
}
