module @all_gather attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32} {
  func.func public @main(%x: tensor<5x3x5xui8> {mhlo.sharding = "{manual}"}) -> (tensor<5x3x10xui8> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}) {
    %y = "stablehlo.all_gather"(%x) <{replica_groups = dense<[[1], [0]]> : tensor<2x1xi64>, all_gather_dim = 2 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>}>  {mhlo.sharding = "{manual}"} : (tensor<5x3x5xui8>) -> tensor<5x3x10xui8>
    %r = stablehlo.replica_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    %p = stablehlo.partition_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    return %y, %r, %p : tensor<5x3x10xui8>, tensor<ui32>, tensor<ui32>
  }
}
