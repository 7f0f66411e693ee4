module @collective_broadcast attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32} {
  func.func public @main(%x: tensor<3x4xf64> {mhlo.sharding = "{manual}"}) -> (tensor<3x4xf64> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}) {
    %y = "stablehlo.collective_broadcast"(%x) <{replica_groups = dense<[[0], [1]]> : tensor<2x1xi64>}>  {mhlo.sharding = "{manual}"} : (tensor<3x4xf64>) -> tensor<3x4xf64>
    %r = stablehlo.replica_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    %p = stablehlo.partition_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    return %y, %r, %p : tensor<3x4xf64>, tensor<ui32>, tensor<ui32>
  }
}
