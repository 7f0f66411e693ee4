module @all_gather attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32} {
  func.func public @main(%x: tensor<1x2x2xi32> {mhlo.sharding = "{manual}"}) -> (tensor<1x2x8xi32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}) {
    %y = "stablehlo.all_gather"(%x) <{replica_groups = dense<[[3, 1, 2, 0]]> : tensor<1x4xi64>, all_gather_dim = 2 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids}>  {mhlo.sharding = "{manual}"} : (tensor<1x2x2xi32>) -> tensor<1x2x8xi32>
    %r = stablehlo.replica_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    %p = stablehlo.partition_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    return %y, %r, %p : tensor<1x2x8xi32>, tensor<ui32>, tensor<ui32>
  }
}
