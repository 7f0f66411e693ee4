module @all_gather attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {
  func.func public @main(%x: tensor<2xf32> {mhlo.sharding = "{manual}"}) -> (tensor<8xf32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}) {
    %y = "stablehlo.all_gather"(%x) <{replica_groups = dense<[[1, 0, 3, 2]]> : tensor<1x4xi64>, all_gather_dim = 0 : i64}>  {mhlo.sharding = "{manual}"} : (tensor<2xf32>) -> tensor<8xf32>
    %r = stablehlo.replica_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    %p = stablehlo.partition_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    return %y, %r, %p : tensor<8xf32>, tensor<ui32>, tensor<ui32>
  }
}
