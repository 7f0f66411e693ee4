module @collective_broadcast attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<1x3x1xf32> {mhlo.sharding = "{manual}"}) -> (tensor<1x3x1xf32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}) {
    %y = "stablehlo.collective_broadcast"(%x) <{replica_groups = dense<[[0]]> : tensor<1x1xi64>}>  {mhlo.sharding = "{manual}"} : (tensor<1x3x1xf32>) -> tensor<1x3x1xf32>
    %r = stablehlo.replica_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    %p = stablehlo.partition_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    return %y, %r, %p : tensor<1x3x1xf32>, tensor<ui32>, tensor<ui32>
  }
}
