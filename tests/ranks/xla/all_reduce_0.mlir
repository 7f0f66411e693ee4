module @all_reduce attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {
  func.func public @main(%x: tensor<4x5x3xf64> {mhlo.sharding = "{manual}"}) -> (tensor<4x5x3xf64> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}) {
    %y = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[1, 0, 3, 2]]> : tensor<1x4xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f64>, %b: tensor<f64>):
      %c = stablehlo.multiply %a, %b : tensor<f64>
      stablehlo.return %c : tensor<f64>
  }) {mhlo.sharding = "{manual}"} : (tensor<4x5x3xf64>) -> tensor<4x5x3xf64>
    %r = stablehlo.replica_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    %p = stablehlo.partition_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    return %y, %r, %p : tensor<4x5x3xf64>, tensor<ui32>, tensor<ui32>
  }
}
