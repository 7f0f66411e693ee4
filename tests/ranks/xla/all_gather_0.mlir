module @all_gather attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {
  func.func public @main(%x: tensor<3x1x3xf64> {mhlo.sharding = "{manual}"}) -> (tensor<3x1x6xf64> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}) {
    %y = "stablehlo.all_gather"(%x) <{replica_groups = dense<[[3, 1], [2, 0]]> : tensor<2x2xi64>, all_gather_dim = 2 : i64}>  {mhlo.sharding = "{manual}"} : (tensor<3x1x3xf64>) -> tensor<3x1x6xf64>
    %r = stablehlo.replica_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    %p = stablehlo.partition_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    return %y, %r, %p : tensor<3x1x6xf64>, tensor<ui32>, tensor<ui32>
  }
}
