module @all_to_all attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {
  func.func public @main(%x: tensor<5x3x4xf64> {mhlo.sharding = "{manual}"}) -> (tensor<5x3x4xf64> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}) {
    %y = "stablehlo.all_to_all"(%x) <{replica_groups = dense<[[2], [1], [3], [0]]> : tensor<4x1xi64>, split_dimension = 1 : i64, concat_dimension = 2 : i64, split_count = 1 : i64}>  {mhlo.sharding = "{manual}"} : (tensor<5x3x4xf64>) -> tensor<5x3x4xf64>
    %r = stablehlo.replica_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    %p = stablehlo.partition_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    return %y, %r, %p : tensor<5x3x4xf64>, tensor<ui32>, tensor<ui32>
  }
}
