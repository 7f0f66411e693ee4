module @collective_broadcast attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {
  func.func public @main(%x: tensor<2x4x4xf64> {mhlo.sharding = "{manual}"}) -> (tensor<2x4x4xf64> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}) {
    %y = "stablehlo.collective_broadcast"(%x) <{replica_groups = dense<[[0]]> : tensor<1x1xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>}>  {mhlo.sharding = "{manual}"} : (tensor<2x4x4xf64>) -> tensor<2x4x4xf64>
    %r = stablehlo.replica_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    %p = stablehlo.partition_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    return %y, %r, %p : tensor<2x4x4xf64>, tensor<ui32>, tensor<ui32>
  }
}
