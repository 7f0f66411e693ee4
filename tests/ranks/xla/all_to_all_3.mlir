module @all_to_all attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32} {
  func.func public @main(%x: tensor<5x4xi32> {mhlo.sharding = "{manual}"}) -> (tensor<5x4xi32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}) {
    %y = "stablehlo.all_to_all"(%x) <{replica_groups = dense<[[0], [1]]> : tensor<2x1xi64>, split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 1 : i64}>  {mhlo.sharding = "{manual}"} : (tensor<5x4xi32>) -> tensor<5x4xi32>
    %r = stablehlo.replica_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    %p = stablehlo.partition_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    return %y, %r, %p : tensor<5x4xi32>, tensor<ui32>, tensor<ui32>
  }
}
