
%struct.Opaque = type { [128 x i8] }
%struct.Tensor = type { ptr, ptr, ptr, ptr, ptr, i64, i32, i32, i32 }
%struct.Call = type { ptr, ptr, ptr, ptr, ptr, ptr }
%struct.Size = type { i64, i64 }

@workspace_mutex = internal global %struct.Opaque zeroinitializer, align 16
@tfaot_cluster_count = external hidden local_unnamed_addr constant i64, align 8
@tfaot_clusters = external hidden local_unnamed_addr constant [0 x ptr], align 8
@.str = private unnamed_addr constant [34 x i8] c"tfaot: TensorFlow refuses an op: \00", align 1
@.str.1 = private unnamed_addr constant [2 x i8] c"\0A\00", align 1
@.str.2 = private unnamed_addr constant [11 x i8] c"fits: bool\00", align 1
@.str.3 = private unnamed_addr constant [4 x i8] c"CPU\00", align 1
@.str.4 = private unnamed_addr constant [74 x i8] c"tfaot: the cluster was compiled for another shape or value of an argument\00", align 1
@.str.5 = private unnamed_addr constant [48 x i8] c"tfaot: no memory for the workspace of a cluster\00", align 1
@.str.6 = private unnamed_addr constant [75 x i8] c"tfaot: this processor lacks instructions that the cluster was compiled for\00", align 1
@.str.7 = private unnamed_addr constant [62 x i8] c"tfaot: a size is outside of what the cluster was compiled for\00", align 1
@.str.8 = private unnamed_addr constant [33 x i8] c"tfaot: no memory for an argument\00", align 1
@.str.9 = private unnamed_addr constant [30 x i8] c"tfaot: no memory for a result\00", align 1
@workspaces = internal unnamed_addr global ptr null, align 8
@tfaot_workspace_bytes = external hidden local_unnamed_addr constant i64, align 8
@executor = internal constant { ptr, i32, [4 x i8], ptr } { ptr null, i32 0, [4 x i8] zeroinitializer, ptr @parallel_for }, align 8
@pool = internal unnamed_addr global ptr null, align 8
@pool_is_asked_for = internal global i32 0, align 4
@tfaot_threads = external hidden local_unnamed_addr constant i64, align 8

; Function Attrs: nounwind
define hidden void @tfaot_set_shapes(ptr noundef readonly captures(none) %c, ptr noundef %ctx, ptr noundef %status) local_unnamed_addr #0 {
entry:
  tail call void @TF_ShapeInferenceContextSetUnknownShape(ptr noundef %ctx, ptr noundef %status) #7
  %result_count = getelementptr inbounds nuw i8, ptr %c, i64 76
  %0 = load i32, ptr %result_count, align 4
  %cmp14 = icmp sgt i32 %0, 0
  br i1 %cmp14, label %land.rhs.lr.ph, label %for.cond.cleanup

land.rhs.lr.ph:                                   ; preds = %entry
  %results = getelementptr inbounds nuw i8, ptr %c, i64 24
  br label %land.rhs

land.rhs:                                         ; preds = %land.rhs.lr.ph, %for.inc
  %indvars.iv = phi i64 [ 0, %land.rhs.lr.ph ], [ %indvars.iv.next, %for.inc ]
  %call = tail call i32 @TF_GetCode(ptr noundef %status) #7
  %cmp1 = icmp eq i32 %call, 0
  br i1 %cmp1, label %for.body, label %for.cond.cleanup

for.cond.cleanup:                                 ; preds = %land.rhs, %for.inc, %entry
  ret void

for.body:                                         ; preds = %land.rhs
  %1 = load ptr, ptr %results, align 8
  %arrayidx = getelementptr inbounds nuw %struct.Tensor, ptr %1, i64 %indvars.iv
  %axes = getelementptr inbounds nuw i8, ptr %arrayidx, i64 16
  %2 = load ptr, ptr %axes, align 8
  %tobool.not = icmp eq ptr %2, null
  br i1 %tobool.not, label %if.then, label %for.inc

if.then:                                          ; preds = %for.body
  %3 = trunc nuw nsw i64 %indvars.iv to i32
  tail call fastcc void @set_shape(ptr noundef %ctx, i32 noundef %3, ptr noundef %arrayidx, ptr noundef %status) #8
  br label %for.inc

for.inc:                                          ; preds = %for.body, %if.then
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %4 = load i32, ptr %result_count, align 4
  %5 = sext i32 %4 to i64
  %cmp = icmp slt i64 %indvars.iv.next, %5
  br i1 %cmp, label %land.rhs, label %for.cond.cleanup
}

declare void @TF_ShapeInferenceContextSetUnknownShape(ptr noundef, ptr noundef) local_unnamed_addr #1

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #2

declare i32 @TF_GetCode(ptr noundef) local_unnamed_addr #1

; Function Attrs: nounwind
define internal fastcc void @set_shape(ptr noundef %ctx, i32 noundef %i, ptr noundef readonly captures(none) %r, ptr noundef %status) unnamed_addr #0 {
entry:
  %call = tail call ptr @TF_ShapeInferenceContextScalar(ptr noundef %ctx) #7
  %rank = getelementptr inbounds nuw i8, ptr %r, i64 56
  %0 = load i32, ptr %rank, align 8
  %cmp21 = icmp sgt i32 %0, 0
  br i1 %cmp21, label %land.rhs.lr.ph, label %for.cond.cleanup

land.rhs.lr.ph:                                   ; preds = %entry
  %dims = getelementptr inbounds nuw i8, ptr %r, i64 8
  br label %land.rhs

land.rhs:                                         ; preds = %land.rhs.lr.ph, %for.body
  %indvars.iv = phi i64 [ 0, %land.rhs.lr.ph ], [ %indvars.iv.next, %for.body ]
  %whole.023 = phi ptr [ %call, %land.rhs.lr.ph ], [ %call4, %for.body ]
  %call1 = tail call i32 @TF_GetCode(ptr noundef %status) #7
  %cmp2 = icmp eq i32 %call1, 0
  br i1 %cmp2, label %for.body, label %for.cond.cleanup

for.cond.cleanup:                                 ; preds = %land.rhs, %for.body, %entry
  %whole.0.lcssa = phi ptr [ %call, %entry ], [ %whole.023, %land.rhs ], [ %call4, %for.body ]
  %call5 = tail call i32 @TF_GetCode(ptr noundef %status) #7
  %cmp6 = icmp eq i32 %call5, 0
  br i1 %cmp6, label %if.then, label %if.end

for.body:                                         ; preds = %land.rhs
  %1 = load ptr, ptr %dims, align 8
  %arrayidx = getelementptr inbounds nuw i64, ptr %1, i64 %indvars.iv
  %2 = load i64, ptr %arrayidx, align 8
  %call3 = tail call ptr @TF_ShapeInferenceContextVectorFromSize(ptr noundef %ctx, i64 noundef %2) #7
  %call4 = tail call ptr @TF_NewShapeHandle() #7
  tail call void @TF_ShapeInferenceContextConcatenateShapes(ptr noundef %ctx, ptr noundef %whole.023, ptr noundef %call3, ptr noundef %call4, ptr noundef %status) #7
  tail call void @TF_DeleteShapeHandle(ptr noundef %whole.023) #7
  tail call void @TF_DeleteShapeHandle(ptr noundef %call3) #7
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %3 = load i32, ptr %rank, align 8
  %4 = sext i32 %3 to i64
  %cmp = icmp slt i64 %indvars.iv.next, %4
  br i1 %cmp, label %land.rhs, label %for.cond.cleanup

if.then:                                          ; preds = %for.cond.cleanup
  tail call void @TF_ShapeInferenceContextSetOutput(ptr noundef %ctx, i32 noundef %i, ptr noundef %whole.0.lcssa, ptr noundef %status) #7
  br label %if.end

if.end:                                           ; preds = %if.then, %for.cond.cleanup
  tail call void @TF_DeleteShapeHandle(ptr noundef %whole.0.lcssa) #7
  ret void
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #2

; Function Attrs: nounwind
define hidden void @tfaot_load() local_unnamed_addr #0 {
entry:
  %call = tail call i32 @pthread_mutex_init(ptr noundef nonnull @workspace_mutex, ptr noundef null) #7
  %call1 = tail call ptr @TF_NewStatus() #7
  %0 = load i64, ptr @tfaot_cluster_count, align 8
  %cmp19 = icmp sgt i64 %0, 0
  br i1 %cmp19, label %for.body, label %cleanup6

for.cond:                                         ; preds = %land.lhs.true
  %inc = add nuw nsw i64 %i.020, 1
  %exitcond.not = icmp eq i64 %inc, %0
  br i1 %exitcond.not, label %cleanup6, label %for.body

for.body:                                         ; preds = %entry, %for.cond
  %i.020 = phi i64 [ %inc, %for.cond ], [ 0, %entry ]
  %arrayidx = getelementptr inbounds nuw ptr, ptr @tfaot_clusters, i64 %i.020
  %1 = load ptr, ptr %arrayidx, align 8
  %2 = load ptr, ptr %1, align 8
  %call2 = tail call fastcc i32 @register_op(ptr noundef nonnull %1, ptr noundef %2, i32 noundef 1, ptr noundef %call1) #8
  %tobool.not = icmp eq i32 %call2, 0
  br i1 %tobool.not, label %if.end, label %land.lhs.true

land.lhs.true:                                    ; preds = %for.body
  %fits = getelementptr inbounds nuw i8, ptr %1, i64 8
  %3 = load ptr, ptr %fits, align 8
  %call3 = tail call fastcc i32 @register_op(ptr noundef nonnull %1, ptr noundef %3, i32 noundef 0, ptr noundef %call1) #8
  %tobool4.not = icmp eq i32 %call3, 0
  br i1 %tobool4.not, label %if.end, label %for.cond

if.end:                                           ; preds = %land.lhs.true, %for.body
  %call.i = tail call i64 @strlen(ptr noundef nonnull @.str) #7
  %call1.i = tail call i64 @write(i32 noundef 2, ptr noundef nonnull @.str, i64 noundef %call.i) #7
  %call5 = tail call ptr @TF_Message(ptr noundef %call1) #7
  %call.i15 = tail call i64 @strlen(ptr noundef %call5) #7
  %call1.i16 = tail call i64 @write(i32 noundef 2, ptr noundef %call5, i64 noundef %call.i15) #7
  %call.i17 = tail call i64 @strlen(ptr noundef nonnull @.str.1) #7
  %call1.i18 = tail call i64 @write(i32 noundef 2, ptr noundef nonnull @.str.1, i64 noundef %call.i17) #7
  br label %cleanup6

cleanup6:                                         ; preds = %for.cond, %entry, %if.end
  tail call void @TF_DeleteStatus(ptr noundef %call1) #7
  ret void
}

declare i32 @pthread_mutex_init(ptr noundef, ptr noundef) local_unnamed_addr #1

declare ptr @TF_NewStatus() local_unnamed_addr #1

; Function Attrs: nounwind
define internal fastcc range(i32 0, 2) i32 @register_op(ptr noundef readonly captures(none) %c, ptr noundef %name, i32 noundef range(i32 0, 2) %native, ptr noundef %status) unnamed_addr #0 {
entry:
  %call = tail call ptr @TF_NewOpDefinitionBuilder(ptr noundef %name) #7
  %arg_count = getelementptr inbounds nuw i8, ptr %c, i64 72
  %0 = load i32, ptr %arg_count, align 8
  %cmp52 = icmp sgt i32 %0, 0
  br i1 %cmp52, label %for.body.lr.ph, label %for.cond2.preheader

for.body.lr.ph:                                   ; preds = %entry
  %args = getelementptr inbounds nuw i8, ptr %c, i64 16
  br label %for.body

for.cond2.preheader:                              ; preds = %for.body, %entry
  %tobool.not = icmp eq i32 %native, 0
  br i1 %tobool.not, label %cond.end.critedge, label %land.rhs.lr.ph

land.rhs.lr.ph:                                   ; preds = %for.cond2.preheader
  %result_count = getelementptr inbounds nuw i8, ptr %c, i64 76
  %results = getelementptr inbounds nuw i8, ptr %c, i64 24
  %1 = load i32, ptr %result_count, align 4
  %cmp359 = icmp sgt i32 %1, 0
  br i1 %cmp359, label %for.body5, label %cond.true

for.body:                                         ; preds = %for.body.lr.ph, %for.body
  %indvars.iv = phi i64 [ 0, %for.body.lr.ph ], [ %indvars.iv.next, %for.body ]
  %2 = load ptr, ptr %args, align 8
  %arrayidx = getelementptr inbounds nuw %struct.Tensor, ptr %2, i64 %indvars.iv
  %3 = load ptr, ptr %arrayidx, align 8
  tail call void @TF_OpDefinitionBuilderAddInput(ptr noundef %call, ptr noundef %3) #7
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %4 = load i32, ptr %arg_count, align 8
  %5 = sext i32 %4 to i64
  %cmp = icmp slt i64 %indvars.iv.next, %5
  br i1 %cmp, label %for.body, label %for.cond2.preheader

for.body5:                                        ; preds = %land.rhs.lr.ph, %for.body5
  %indvars.iv5660 = phi i64 [ %indvars.iv.next57, %for.body5 ], [ 0, %land.rhs.lr.ph ]
  %6 = load ptr, ptr %results, align 8
  %arrayidx7 = getelementptr inbounds nuw %struct.Tensor, ptr %6, i64 %indvars.iv5660
  %7 = load ptr, ptr %arrayidx7, align 8
  tail call void @TF_OpDefinitionBuilderAddOutput(ptr noundef %call, ptr noundef %7) #7
  %indvars.iv.next57 = add nuw nsw i64 %indvars.iv5660, 1
  %8 = load i32, ptr %result_count, align 4
  %9 = sext i32 %8 to i64
  %cmp3 = icmp slt i64 %indvars.iv.next57, %9
  br i1 %cmp3, label %for.body5, label %cond.true

cond.true:                                        ; preds = %for.body5, %land.rhs.lr.ph
  %shapes = getelementptr inbounds nuw i8, ptr %c, i64 40
  %10 = load ptr, ptr %shapes, align 8
  br label %cond.end

cond.end.critedge:                                ; preds = %for.cond2.preheader
  tail call void @TF_OpDefinitionBuilderAddOutput(ptr noundef %call, ptr noundef nonnull @.str.2) #7
  br label %cond.end

cond.end:                                         ; preds = %cond.end.critedge, %cond.true
  %tobool.not51 = phi ptr [ @compute, %cond.true ], [ @fits_compute, %cond.end.critedge ]
  %cond = phi ptr [ %10, %cond.true ], [ @scalar_shape, %cond.end.critedge ]
  tail call void @TF_OpDefinitionBuilderSetShapeInferenceFunction(ptr noundef %call, ptr noundef %cond) #7
  tail call void @TF_RegisterOpDefinition(ptr noundef %call, ptr noundef %status) #7
  %call14 = tail call i32 @TF_GetCode(ptr noundef %status) #7
  %cmp15.not = icmp eq i32 %call14, 0
  br i1 %cmp15.not, label %if.end17, label %cleanup

if.end17:                                         ; preds = %cond.end
  %tobool.i = icmp ne ptr @TF_GetRegisteredKernelsForOp, null
  %tobool1.i = icmp ne ptr @TF_DeleteBuffer, null
  %or.cond.i = and i1 %tobool.i, %tobool1.i
  br i1 %or.cond.i, label %if.end.i, label %if.end21

if.end.i:                                         ; preds = %if.end17
  %call.i = tail call ptr @TF_GetRegisteredKernelsForOp(ptr noundef %name, ptr noundef %status) #7
  %tobool2.not.i = icmp eq ptr %call.i, null
  br i1 %tobool2.not.i, label %if.end21, label %if.end4.i

if.end4.i:                                        ; preds = %if.end.i
  %length.i = getelementptr inbounds nuw i8, ptr %call.i, i64 8
  %11 = load i64, ptr %length.i, align 8
  %cmp.i.not = icmp eq i64 %11, 0
  tail call void @TF_DeleteBuffer(ptr noundef nonnull %call.i) #7
  br i1 %cmp.i.not, label %if.end21, label %cleanup

if.end21:                                         ; preds = %if.end17, %if.end.i, %if.end4.i
  %create = getelementptr inbounds nuw i8, ptr %c, i64 32
  %12 = load ptr, ptr %create, align 8
  %call24 = tail call ptr @TF_NewKernelBuilder(ptr noundef %name, ptr noundef nonnull @.str.3, ptr noundef %12, ptr noundef nonnull %tobool.not51, ptr noundef nonnull @destroy) #7
  tail call void @TF_RegisterKernelBuilder(ptr noundef %name, ptr noundef %call24, ptr noundef %status) #7
  %call25 = tail call i32 @TF_GetCode(ptr noundef %status) #7
  %cmp26 = icmp eq i32 %call25, 0
  %conv = zext i1 %cmp26 to i32
  br label %cleanup

cleanup:                                          ; preds = %if.end4.i, %cond.end, %if.end21
  %retval.0 = phi i32 [ %conv, %if.end21 ], [ 0, %cond.end ], [ 1, %if.end4.i ]
  ret i32 %retval.0
}

declare ptr @TF_Message(ptr noundef) local_unnamed_addr #1

declare void @TF_DeleteStatus(ptr noundef) local_unnamed_addr #1

declare ptr @TF_ShapeInferenceContextScalar(ptr noundef) local_unnamed_addr #1

declare ptr @TF_ShapeInferenceContextVectorFromSize(ptr noundef, i64 noundef) local_unnamed_addr #1

declare ptr @TF_NewShapeHandle() local_unnamed_addr #1

declare void @TF_ShapeInferenceContextConcatenateShapes(ptr noundef, ptr noundef, ptr noundef, ptr noundef, ptr noundef) local_unnamed_addr #1

declare void @TF_DeleteShapeHandle(ptr noundef) local_unnamed_addr #1

declare void @TF_ShapeInferenceContextSetOutput(ptr noundef, i32 noundef, ptr noundef, ptr noundef) local_unnamed_addr #1

declare ptr @TF_NewOpDefinitionBuilder(ptr noundef) local_unnamed_addr #1

declare void @TF_OpDefinitionBuilderAddInput(ptr noundef, ptr noundef) local_unnamed_addr #1

declare void @TF_OpDefinitionBuilderAddOutput(ptr noundef, ptr noundef) local_unnamed_addr #1

declare void @TF_OpDefinitionBuilderSetShapeInferenceFunction(ptr noundef, ptr noundef) local_unnamed_addr #1

; Function Attrs: nounwind
define internal void @scalar_shape(ptr noundef %ctx, ptr noundef %status) #0 {
entry:
  %scalar = alloca %struct.Tensor, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %scalar) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(64) %scalar, i8 0, i64 64, i1 false)
  %0 = getelementptr inbounds nuw i8, ptr %scalar, i64 40
  store i64 1, ptr %0, align 8
  %1 = getelementptr inbounds nuw i8, ptr %scalar, i64 48
  store i32 1, ptr %1, align 8
  %2 = getelementptr inbounds nuw i8, ptr %scalar, i64 52
  store i32 10, ptr %2, align 4
  call fastcc void @set_shape(ptr noundef %ctx, i32 noundef 0, ptr noundef nonnull %scalar, ptr noundef %status) #8
  call void @llvm.lifetime.end.p0(ptr nonnull %scalar) #9
  ret void
}

declare void @TF_RegisterOpDefinition(ptr noundef, ptr noundef) local_unnamed_addr #1

declare ptr @TF_NewKernelBuilder(ptr noundef, ptr noundef, ptr noundef, ptr noundef, ptr noundef) local_unnamed_addr #1

; Function Attrs: nounwind
define internal void @compute(ptr noundef readonly captures(none) %state, ptr noundef %ctx) #0 {
entry:
  %sizes1.i.i.i = alloca [1 x i64], align 8
  %made.i.i = alloca ptr, align 8
  %call = alloca %struct.Call, align 8
  %arg_count = getelementptr inbounds nuw i8, ptr %state, i64 72
  %0 = load i32, ptr %arg_count, align 8
  %result_count = getelementptr inbounds nuw i8, ptr %state, i64 76
  %1 = load i32, ptr %result_count, align 4
  %add = add nsw i32 %1, %0
  %add1 = add nsw i32 %add, 1
  %2 = zext i32 %add1 to i64
  %vla = alloca ptr, i64 %2, align 16
  %add2 = add nsw i32 %0, 1
  %3 = zext i32 %add2 to i64
  %vla3 = alloca ptr, i64 %3, align 16
  %add5 = add nsw i32 %1, 1
  %4 = zext i32 %add5 to i64
  %vla6 = alloca ptr, i64 %4, align 16
  %vla8 = alloca ptr, i64 %2, align 16
  %size_count = getelementptr inbounds nuw i8, ptr %state, i64 80
  %5 = load i32, ptr %size_count, align 8
  %add9 = add nsw i32 %5, 1
  %6 = zext i32 %add9 to i64
  %vla10 = alloca i64, i64 %6, align 16
  %cmp.not56 = icmp slt i32 %add, 0
  br i1 %cmp.not56, label %for.cond.cleanup, label %for.body.preheader

for.body.preheader:                               ; preds = %entry
  %7 = add i32 %0, %1
  %8 = add i32 %7, 1
  %wide.trip.count = zext i32 %8 to i64
  br label %for.body

for.cond.cleanup:                                 ; preds = %for.body, %entry
  call void @llvm.lifetime.start.p0(ptr nonnull %call) #9
  store ptr %vla, ptr %call, align 8
  %args13 = getelementptr inbounds nuw i8, ptr %call, i64 8
  store ptr %vla3, ptr %args13, align 8
  %results = getelementptr inbounds nuw i8, ptr %call, i64 16
  store ptr %vla6, ptr %results, align 8
  %copies = getelementptr inbounds nuw i8, ptr %call, i64 24
  store ptr %vla8, ptr %copies, align 8
  %sizes = getelementptr inbounds nuw i8, ptr %call, i64 32
  store ptr %vla10, ptr %sizes, align 8
  %workspace = getelementptr inbounds nuw i8, ptr %call, i64 40
  store ptr null, ptr %workspace, align 8
  %call14 = call ptr @TF_NewStatus() #7
  %9 = load i32, ptr %arg_count, align 8
  %cmp6.i.i = icmp sgt i32 %9, 0
  br i1 %cmp6.i.i, label %land.rhs.i.i, label %take.exit.i

land.rhs.i.i:                                     ; preds = %for.cond.cleanup, %for.body.i.i
  %indvars.iv.i.i = phi i64 [ %indvars.iv.next.i.i, %for.body.i.i ], [ 0, %for.cond.cleanup ]
  %call.i.i = call i32 @TF_GetCode(ptr noundef %call14) #7
  %cmp1.i.i = icmp eq i32 %call.i.i, 0
  br i1 %cmp1.i.i, label %for.body.i.i, label %take.exit.i

for.body.i.i:                                     ; preds = %land.rhs.i.i
  %arrayidx.i.i = getelementptr inbounds nuw ptr, ptr %vla, i64 %indvars.iv.i.i
  %10 = trunc nuw nsw i64 %indvars.iv.i.i to i32
  call void @TF_GetInput(ptr noundef %ctx, i32 noundef %10, ptr noundef nonnull %arrayidx.i.i, ptr noundef %call14) #7
  %indvars.iv.next.i.i = add nuw nsw i64 %indvars.iv.i.i, 1
  %11 = load i32, ptr %arg_count, align 8
  %12 = sext i32 %11 to i64
  %cmp.i.i = icmp slt i64 %indvars.iv.next.i.i, %12
  br i1 %cmp.i.i, label %land.rhs.i.i, label %take.exit.i

take.exit.i:                                      ; preds = %for.body.i.i, %land.rhs.i.i, %for.cond.cleanup
  %call1.i = call i32 @TF_GetCode(ptr noundef %call14) #7
  %cmp.not.i = icmp eq i32 %call1.i, 0
  br i1 %cmp.not.i, label %if.end.i, label %run.exit

if.end.i:                                         ; preds = %take.exit.i
  %call3.i = call fastcc i32 @fits(ptr noundef readonly %state, ptr noundef nonnull %vla, ptr noundef nonnull %vla10) #8
  %tobool.not.i = icmp eq i32 %call3.i, 0
  br i1 %tobool.not.i, label %if.then4.i, label %for.cond.preheader.i

for.cond.preheader.i:                             ; preds = %if.end.i
  %13 = load i32, ptr %arg_count, align 8
  %cmp6.not117.i = icmp sgt i32 %13, 0
  br i1 %cmp6.not117.i, label %for.body.lr.ph.i, label %for.end.i

for.body.lr.ph.i:                                 ; preds = %for.cond.preheader.i
  %args.i = getelementptr inbounds nuw i8, ptr %state, i64 16
  br label %for.body.i

if.then4.i:                                       ; preds = %if.end.i
  call void @TF_SetStatus(ptr noundef %call14, i32 noundef 13, ptr noundef nonnull @.str.4) #7
  br label %run.exit

for.body.i:                                       ; preds = %for.inc.i, %for.body.lr.ph.i
  %indvars.iv.i = phi i64 [ 0, %for.body.lr.ph.i ], [ %indvars.iv.next.i, %for.inc.i ]
  %taken.0118.i = phi i32 [ 0, %for.body.lr.ph.i ], [ %taken.1.i, %for.inc.i ]
  %14 = load ptr, ptr %args.i, align 8
  %arrayidx.i = getelementptr inbounds nuw %struct.Tensor, ptr %14, i64 %indvars.iv.i
  %value.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 24
  %15 = load ptr, ptr %value.i, align 8
  %tobool7.not.i = icmp eq ptr %15, null
  br i1 %tobool7.not.i, label %if.end9.i, label %for.inc.i

if.end9.i:                                        ; preds = %for.body.i
  %arrayidx15.i = getelementptr inbounds nuw ptr, ptr %vla, i64 %indvars.iv.i
  %16 = load ptr, ptr %arrayidx15.i, align 8
  %call16.i = call ptr @TF_TensorData(ptr noundef %16) #7
  %17 = ptrtoint ptr %call16.i to i64
  %align.i.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 48
  %18 = load i32, ptr %align.i.i, align 8
  %sub.i.i = add i32 %18, -1
  %conv.i.i = zext i32 %sub.i.i to i64
  %and.i.i = and i64 %conv.i.i, %17
  %cmp.i80.i = icmp eq i64 %and.i.i, 0
  br i1 %cmp.i80.i, label %aligned.exit.i, label %if.end.i.i

if.end.i.i:                                       ; preds = %if.end9.i
  %rank.i.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 56
  %19 = call ptr @llvm.stacksave.p0()
  %20 = load i32, ptr %align.i.i, align 8
  %conv.i.i.i = zext i32 %20 to i64
  %21 = load i32, ptr %rank.i.i, align 8
  %cmp30.i.i.i = icmp sgt i32 %21, 0
  br i1 %cmp30.i.i.i, label %for.body.lr.ph.i.i.i, label %dims_of.exit.i.i

for.body.lr.ph.i.i.i:                             ; preds = %if.end.i.i
  %axes.i.i.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 16
  %22 = load ptr, ptr %axes.i.i.i, align 8
  %tobool.not.i.i.i = icmp eq ptr %22, null
  %dims6.i.i.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 8
  %wide.trip.count.i.i.i = zext nneg i32 %21 to i64
  br label %for.body.i.i.i

for.body.i.i.i:                                   ; preds = %cond.end12.i.i.i, %for.body.lr.ph.i.i.i
  %indvars.iv.i.i.i = phi i64 [ 0, %for.body.lr.ph.i.i.i ], [ %indvars.iv.next.i.i.i, %cond.end12.i.i.i ]
  %bytes.032.i.i.i = phi i64 [ %conv.i.i.i, %for.body.lr.ph.i.i.i ], [ %mul.i.i.i, %cond.end12.i.i.i ]
  br i1 %tobool.not.i.i.i, label %cond.end.i.i.i, label %cond.true.i.i.i

cond.true.i.i.i:                                  ; preds = %for.body.i.i.i
  %arrayidx.i.i.i = getelementptr inbounds nuw i32, ptr %22, i64 %indvars.iv.i.i.i
  %23 = load i32, ptr %arrayidx.i.i.i, align 4
  br label %cond.end.i.i.i

cond.end.i.i.i:                                   ; preds = %cond.true.i.i.i, %for.body.i.i.i
  %cond.i.i.i = phi i32 [ %23, %cond.true.i.i.i ], [ -1, %for.body.i.i.i ]
  %cmp3.i.i.i = icmp slt i32 %cond.i.i.i, 0
  br i1 %cmp3.i.i.i, label %cond.true5.i.i.i, label %cond.false9.i.i.i

cond.true5.i.i.i:                                 ; preds = %cond.end.i.i.i
  %24 = load ptr, ptr %dims6.i.i.i, align 8
  %arrayidx8.i.i.i = getelementptr inbounds nuw i64, ptr %24, i64 %indvars.iv.i.i.i
  br label %cond.end12.i.i.i

cond.false9.i.i.i:                                ; preds = %cond.end.i.i.i
  %idxprom10.i.i.i = zext nneg i32 %cond.i.i.i to i64
  %arrayidx11.i.i.i = getelementptr inbounds nuw i64, ptr %vla10, i64 %idxprom10.i.i.i
  br label %cond.end12.i.i.i

cond.end12.i.i.i:                                 ; preds = %cond.false9.i.i.i, %cond.true5.i.i.i
  %cond13.in.i.i.i = phi ptr [ %arrayidx8.i.i.i, %cond.true5.i.i.i ], [ %arrayidx11.i.i.i, %cond.false9.i.i.i ]
  %cond13.i.i.i = load i64, ptr %cond13.in.i.i.i, align 8
  %mul.i.i.i = mul i64 %cond13.i.i.i, %bytes.032.i.i.i
  %indvars.iv.next.i.i.i = add nuw nsw i64 %indvars.iv.i.i.i, 1
  %exitcond.not.i.i.i = icmp eq i64 %indvars.iv.next.i.i.i, %wide.trip.count.i.i.i
  br i1 %exitcond.not.i.i.i, label %dims_of.exit.i.i, label %for.body.i.i.i

dims_of.exit.i.i:                                 ; preds = %cond.end12.i.i.i, %if.end.i.i
  %bytes.0.lcssa.i.i.i = phi i64 [ %conv.i.i.i, %if.end.i.i ], [ %mul.i.i.i, %cond.end12.i.i.i ]
  %call3.i.i = call ptr @malloc(i64 noundef %bytes.0.lcssa.i.i.i) #7
  %arrayidx.i81.i = getelementptr inbounds nuw ptr, ptr %vla8, i64 %indvars.iv.i
  store ptr %call3.i.i, ptr %arrayidx.i81.i, align 8
  %tobool.not.i.i = icmp eq ptr %call3.i.i, null
  br i1 %tobool.not.i.i, label %if.then4.i.i, label %cond.true.i.i

if.then4.i.i:                                     ; preds = %dims_of.exit.i.i
  call void @TF_SetStatus(ptr noundef %call14, i32 noundef 8, ptr noundef nonnull @.str.8) #7
  br label %cond.end.i.i

cond.true.i.i:                                    ; preds = %dims_of.exit.i.i
  %call7.i.i = call ptr @memcpy(ptr noundef nonnull %call3.i.i, ptr noundef %call16.i, i64 noundef %bytes.0.lcssa.i.i.i) #7
  br label %cond.end.i.i

cond.end.i.i:                                     ; preds = %cond.true.i.i, %if.then4.i.i
  %cond.i.i = phi ptr [ %call7.i.i, %cond.true.i.i ], [ null, %if.then4.i.i ]
  call void @llvm.stackrestore.p0(ptr %19)
  br label %aligned.exit.i

aligned.exit.i:                                   ; preds = %cond.end.i.i, %if.end9.i
  %retval.0.i.i = phi ptr [ %cond.i.i, %cond.end.i.i ], [ %call16.i, %if.end9.i ]
  %inc.i = add nsw i32 %taken.0118.i, 1
  %idxprom19.i = sext i32 %taken.0118.i to i64
  %arrayidx20.i = getelementptr inbounds ptr, ptr %vla3, i64 %idxprom19.i
  store ptr %retval.0.i.i, ptr %arrayidx20.i, align 8
  %call21.i = call i32 @TF_GetCode(ptr noundef %call14) #7
  %cmp22.not.i = icmp eq i32 %call21.i, 0
  br i1 %cmp22.not.i, label %for.inc.i, label %run.exit

for.inc.i:                                        ; preds = %aligned.exit.i, %for.body.i
  %taken.1.i = phi i32 [ %taken.0118.i, %for.body.i ], [ %inc.i, %aligned.exit.i ]
  %indvars.iv.next.i = add nuw nsw i64 %indvars.iv.i, 1
  %25 = load i32, ptr %arg_count, align 8
  %26 = sext i32 %25 to i64
  %cmp6.not.i = icmp slt i64 %indvars.iv.next.i, %26
  br i1 %cmp6.not.i, label %for.body.i, label %for.end.i

for.end.i:                                        ; preds = %for.inc.i, %for.cond.preheader.i
  %27 = load i32, ptr %result_count, align 4
  %cmp55.i.i = icmp sgt i32 %27, 0
  br i1 %cmp55.i.i, label %for.body.lr.ph.i.i, label %hold_results.exit.i

for.body.lr.ph.i.i:                               ; preds = %for.end.i
  %results.i.i = getelementptr inbounds nuw i8, ptr %state, i64 24
  %given_count.i.i.i = getelementptr inbounds nuw i8, ptr %state, i64 84
  br label %for.body.i85.i

for.body.i85.i:                                   ; preds = %for.inc.i.i, %for.body.lr.ph.i.i
  %indvars.iv.i86.i = phi i64 [ 0, %for.body.lr.ph.i.i ], [ %indvars.iv.next.i93.i, %for.inc.i.i ]
  %28 = load ptr, ptr %results.i.i, align 8
  %arrayidx.i87.i = getelementptr inbounds nuw %struct.Tensor, ptr %28, i64 %indvars.iv.i86.i
  %axes.i.i88.i = getelementptr inbounds nuw i8, ptr %arrayidx.i87.i, i64 16
  %29 = load ptr, ptr %axes.i.i88.i, align 8
  %tobool.not.i.i89.i = icmp eq ptr %29, null
  br i1 %tobool.not.i.i89.i, label %if.end14.i.i, label %land.rhs.lr.ph.i.i.i

land.rhs.lr.ph.i.i.i:                             ; preds = %for.body.i85.i
  %rank.i.i.i = getelementptr inbounds nuw i8, ptr %arrayidx.i87.i, i64 56
  %30 = load i32, ptr %rank.i.i.i, align 8
  %smax.i.i.i = call i32 @llvm.smax.i32(i32 %30, i32 0)
  %wide.trip.count.i.i90.i = zext nneg i32 %smax.i.i.i to i64
  %exitcond.not.i53.i.i = icmp slt i32 %30, 1
  br i1 %exitcond.not.i53.i.i, label %if.end14.i.i, label %for.body.i.lr.ph.i.i

for.body.i.lr.ph.i.i:                             ; preds = %land.rhs.lr.ph.i.i.i
  %31 = load i32, ptr %given_count.i.i.i, align 4
  br label %for.body.i.i91.i

land.rhs.i.i.i:                                   ; preds = %for.body.i.i91.i
  %indvars.iv.next.i.i95.i = add nuw nsw i64 %indvars.iv.i54.i.i, 1
  %exitcond.not.i.i96.i = icmp eq i64 %indvars.iv.next.i.i95.i, %wide.trip.count.i.i90.i
  br i1 %exitcond.not.i.i96.i, label %if.end14.i.i, label %for.body.i.i91.i

for.body.i.i91.i:                                 ; preds = %land.rhs.i.i.i, %for.body.i.lr.ph.i.i
  %indvars.iv.i54.i.i = phi i64 [ 0, %for.body.i.lr.ph.i.i ], [ %indvars.iv.next.i.i95.i, %land.rhs.i.i.i ]
  %arrayidx.i.i92.i = getelementptr inbounds nuw i32, ptr %29, i64 %indvars.iv.i54.i.i
  %32 = load i32, ptr %arrayidx.i.i92.i, align 4
  %cmp2.not.i.i.i = icmp slt i32 %32, %31
  br i1 %cmp2.not.i.i.i, label %land.rhs.i.i.i, label %if.then.i.i

if.then.i.i:                                      ; preds = %for.body.i.i91.i
  %bytes.i.i = getelementptr inbounds nuw i8, ptr %arrayidx.i87.i, i64 40
  %33 = load i64, ptr %bytes.i.i, align 8
  %add.i.i = add i64 %33, 1
  %call2.i.i = call ptr @malloc(i64 noundef %add.i.i) #7
  %34 = load i32, ptr %arg_count, align 8
  %35 = trunc nuw nsw i64 %indvars.iv.i86.i to i32
  %add3.i.i = add nsw i32 %34, %35
  %idxprom4.i.i = sext i32 %add3.i.i to i64
  %arrayidx5.i.i = getelementptr inbounds ptr, ptr %vla8, i64 %idxprom4.i.i
  store ptr %call2.i.i, ptr %arrayidx5.i.i, align 8
  %arrayidx8.i.i = getelementptr inbounds nuw ptr, ptr %vla6, i64 %indvars.iv.i86.i
  store ptr %call2.i.i, ptr %arrayidx8.i.i, align 8
  %tobool12.not.i.i = icmp eq ptr %call2.i.i, null
  br i1 %tobool12.not.i.i, label %if.then13.i.i, label %cleanup28.i.i

if.then13.i.i:                                    ; preds = %if.then.i.i
  call void @TF_SetStatus(ptr noundef %call14, i32 noundef 8, ptr noundef nonnull @.str.9) #7
  br label %cleanup28.i.i

if.end14.i.i:                                     ; preds = %land.rhs.i.i.i, %land.rhs.lr.ph.i.i.i, %for.body.i85.i
  %36 = trunc nuw nsw i64 %indvars.iv.i86.i to i32
  %call15.i.i = call fastcc ptr @allocated(ptr noundef %arrayidx.i87.i, ptr noundef %ctx, i32 noundef %36, ptr noundef nonnull %vla10, ptr noundef %call14) #8
  %call16.i.i = call i32 @TF_GetCode(ptr noundef %call14) #7
  %cmp17.not.i.i = icmp eq i32 %call16.i.i, 0
  br i1 %cmp17.not.i.i, label %if.end19.i.i, label %cleanup28.i.i

if.end19.i.i:                                     ; preds = %if.end14.i.i
  %37 = load i32, ptr %arg_count, align 8
  %add21.i.i = add nsw i32 %37, %36
  %idxprom22.i.i = sext i32 %add21.i.i to i64
  %arrayidx23.i.i = getelementptr inbounds ptr, ptr %vla, i64 %idxprom22.i.i
  store ptr %call15.i.i, ptr %arrayidx23.i.i, align 8
  %call24.i.i = call ptr @TF_TensorData(ptr noundef %call15.i.i) #7
  %arrayidx27.i.i = getelementptr inbounds nuw ptr, ptr %vla6, i64 %indvars.iv.i86.i
  store ptr %call24.i.i, ptr %arrayidx27.i.i, align 8
  br label %cleanup28.i.i

cleanup28.i.i:                                    ; preds = %if.end19.i.i, %if.end14.i.i, %if.then13.i.i, %if.then.i.i
  %cleanup.dest.slot.1.i.i = phi i32 [ 4, %if.then.i.i ], [ 1, %if.then13.i.i ], [ 0, %if.end19.i.i ], [ 1, %if.end14.i.i ]
  switch i32 %cleanup.dest.slot.1.i.i, label %hold_results.exit.i [
    i32 0, label %for.inc.i.i
    i32 4, label %for.inc.i.i
  ]

for.inc.i.i:                                      ; preds = %cleanup28.i.i, %cleanup28.i.i
  %indvars.iv.next.i93.i = add nuw nsw i64 %indvars.iv.i86.i, 1
  %38 = load i32, ptr %result_count, align 4
  %39 = sext i32 %38 to i64
  %cmp.i94.i = icmp slt i64 %indvars.iv.next.i93.i, %39
  br i1 %cmp.i94.i, label %for.body.i85.i, label %hold_results.exit.i

hold_results.exit.i:                              ; preds = %for.inc.i.i, %cleanup28.i.i, %for.end.i
  %call27.i = call i32 @TF_GetCode(ptr noundef %call14) #7
  %cmp28.not.i = icmp eq i32 %call27.i, 0
  br i1 %cmp28.not.i, label %if.end30.i, label %run.exit

if.end30.i:                                       ; preds = %hold_results.exit.i
  %call.i97.i = call i32 @pthread_mutex_lock(ptr noundef nonnull @workspace_mutex) #7
  %40 = load ptr, ptr @workspaces, align 8
  %tobool.not.i98.i = icmp eq ptr %40, null
  br i1 %tobool.not.i98.i, label %land.lhs.true.critedge.i.i, label %if.then.i99.i

if.then.i99.i:                                    ; preds = %if.end30.i
  %41 = load ptr, ptr %40, align 8
  store ptr %41, ptr @workspaces, align 8
  %call1.i.i = call i32 @pthread_mutex_unlock(ptr noundef nonnull @workspace_mutex) #7
  call void @llvm.lifetime.start.p0(ptr nonnull %made.i.i) #9
  store ptr %40, ptr %made.i.i, align 8
  br label %if.end5.i.i

land.lhs.true.critedge.i.i:                       ; preds = %if.end30.i
  %call1.c.i.i = call i32 @pthread_mutex_unlock(ptr noundef nonnull @workspace_mutex) #7
  call void @llvm.lifetime.start.p0(ptr nonnull %made.i.i) #9
  store ptr null, ptr %made.i.i, align 8
  %42 = load i64, ptr @tfaot_workspace_bytes, align 8
  %call3.i101.i = call i32 @posix_memalign(ptr noundef nonnull %made.i.i, i64 noundef 4096, i64 noundef %42) #7
  %cmp.not.i.i = icmp eq i32 %call3.i101.i, 0
  br i1 %cmp.not.i.i, label %if.end5.i.i, label %take_workspace.exit.i

if.end5.i.i:                                      ; preds = %land.lhs.true.critedge.i.i, %if.then.i99.i
  %43 = load ptr, ptr %made.i.i, align 8
  br label %take_workspace.exit.i

take_workspace.exit.i:                            ; preds = %if.end5.i.i, %land.lhs.true.critedge.i.i
  %retval.0.i100.i = phi ptr [ %43, %if.end5.i.i ], [ null, %land.lhs.true.critedge.i.i ]
  call void @llvm.lifetime.end.p0(ptr nonnull %made.i.i) #9
  store ptr %retval.0.i100.i, ptr %workspace, align 8
  %tobool33.not.i = icmp eq ptr %retval.0.i100.i, null
  br i1 %tobool33.not.i, label %if.then34.i, label %if.end35.i

if.then34.i:                                      ; preds = %take_workspace.exit.i
  call void @TF_SetStatus(ptr noundef %call14, i32 noundef 8, ptr noundef nonnull @.str.5) #7
  br label %run.exit

if.end35.i:                                       ; preds = %take_workspace.exit.i
  %44 = load i32, ptr %size_count, align 8
  %cmp.i102.i = icmp eq i32 %44, 0
  br i1 %cmp.i102.i, label %if.then.i113.i, label %if.end.i103.i

if.then.i113.i:                                   ; preds = %if.end35.i
  %run.i.i = getelementptr inbounds nuw i8, ptr %state, i64 48
  %45 = load ptr, ptr %run.i.i, align 8
  %call1.i115.i = call i32 %45(ptr noundef nonnull %vla3, ptr noundef nonnull %vla6, ptr noundef nonnull %retval.0.i100.i, ptr noundef nonnull @executor) #7
  br label %run_code.exit.i

if.end.i103.i:                                    ; preds = %if.end35.i
  %by_rows.i.i = getelementptr inbounds nuw i8, ptr %state, i64 88
  %46 = load i32, ptr %by_rows.i.i, align 8
  %tobool.not.i104.i = icmp eq i32 %46, 0
  br i1 %tobool.not.i104.i, label %if.end4.i.i, label %if.then2.i.i

if.then2.i.i:                                     ; preds = %if.end.i103.i
  %47 = load i64, ptr %vla10, align 16
  %sizes2.i.i.i = getelementptr inbounds nuw i8, ptr %state, i64 64
  %run.i.i.i = getelementptr inbounds nuw i8, ptr %state, i64 48
  %args9.i.i.i = getelementptr inbounds nuw i8, ptr %state, i64 16
  %results30.i.i.i = getelementptr inbounds nuw i8, ptr %state, i64 24
  br label %do.body.i.i.i

do.body.i.i.i:                                    ; preds = %for.cond.cleanup25.i.i.i, %if.then2.i.i
  %left.0.i.i.i = phi i64 [ %47, %if.then2.i.i ], [ %sub.i.i.i, %for.cond.cleanup25.i.i.i ]
  call void @llvm.lifetime.start.p0(ptr nonnull %sizes1.i.i.i) #9
  %48 = load ptr, ptr %sizes2.i.i.i, align 8
  %most.i.i.i = getelementptr inbounds nuw i8, ptr %48, i64 8
  %49 = load i64, ptr %most.i.i.i, align 8
  %left.0..i.i.i = call i64 @llvm.smin.i64(i64 %left.0.i.i.i, i64 %49)
  store i64 %left.0..i.i.i, ptr %sizes1.i.i.i, align 8
  %50 = load ptr, ptr %run.i.i.i, align 8
  %call7.i.i.i = call i32 %50(ptr noundef nonnull %vla3, ptr noundef nonnull %vla6, ptr noundef nonnull %sizes1.i.i.i, ptr noundef nonnull %retval.0.i100.i, ptr noundef nonnull @executor) #7
  %51 = load i32, ptr %arg_count, align 8
  %cmp884.i.i.i = icmp sgt i32 %51, 0
  br i1 %cmp884.i.i.i, label %for.body.preheader.i.i.i, label %for.cond23.preheader.i.i.i

for.body.preheader.i.i.i:                         ; preds = %do.body.i.i.i
  %wide.trip.count.i.i106.i = zext nneg i32 %51 to i64
  %52 = load ptr, ptr %args9.i.i.i, align 8
  br label %for.body.i.i107.i

for.cond23.preheader.i.i.i:                       ; preds = %for.inc.i.i.i, %do.body.i.i.i
  %53 = load i32, ptr %result_count, align 4
  %cmp2487.i.i.i = icmp sgt i32 %53, 0
  br i1 %cmp2487.i.i.i, label %for.body26.preheader.i.i.i, label %for.cond.cleanup25.i.i.i

for.body26.preheader.i.i.i:                       ; preds = %for.cond23.preheader.i.i.i
  %wide.trip.count93.i.i.i = zext nneg i32 %53 to i64
  %54 = load ptr, ptr %results30.i.i.i, align 8
  br label %for.body26.i.i.i

for.body.i.i107.i:                                ; preds = %for.inc.i.i.i, %for.body.preheader.i.i.i
  %indvars.iv.i.i108.i = phi i64 [ 0, %for.body.preheader.i.i.i ], [ %indvars.iv.next.i.i110.i, %for.inc.i.i.i ]
  %taken.086.i.i.i = phi i32 [ 0, %for.body.preheader.i.i.i ], [ %taken.1.i.i.i, %for.inc.i.i.i ]
  %arrayidx10.i.i.i = getelementptr inbounds nuw %struct.Tensor, ptr %52, i64 %indvars.iv.i.i108.i
  %value.i.i.i = getelementptr inbounds nuw i8, ptr %arrayidx10.i.i.i, i64 24
  %55 = load ptr, ptr %value.i.i.i, align 8
  %tobool.not.i.i109.i = icmp eq ptr %55, null
  br i1 %tobool.not.i.i109.i, label %if.then.i.i.i, label %for.inc.i.i.i

if.then.i.i.i:                                    ; preds = %for.body.i.i107.i
  %idxprom12.i.i.i = sext i32 %taken.086.i.i.i to i64
  %arrayidx13.i.i.i = getelementptr inbounds ptr, ptr %vla3, i64 %idxprom12.i.i.i
  %56 = load ptr, ptr %arrayidx13.i.i.i, align 8
  %axes.i.i.i.i = getelementptr inbounds nuw i8, ptr %arrayidx10.i.i.i, i64 16
  %57 = load ptr, ptr %axes.i.i.i.i, align 8
  %tobool.not.i.i.i.i = icmp eq ptr %57, null
  br i1 %tobool.not.i.i.i.i, label %row_bytes.exit.i.i.i, label %lor.lhs.false.i.i.i.i

lor.lhs.false.i.i.i.i:                            ; preds = %if.then.i.i.i
  %dims.i.i.i.i = getelementptr inbounds nuw i8, ptr %arrayidx10.i.i.i, i64 8
  %58 = load ptr, ptr %dims.i.i.i.i, align 8
  %59 = load i64, ptr %58, align 8
  %cmp.i.i.i.i = icmp eq i64 %59, 0
  br i1 %cmp.i.i.i.i, label %row_bytes.exit.i.i.i, label %if.end.i.i.i.i

if.end.i.i.i.i:                                   ; preds = %lor.lhs.false.i.i.i.i
  %bytes.i.i.i.i = getelementptr inbounds nuw i8, ptr %arrayidx10.i.i.i, i64 40
  %60 = load i64, ptr %bytes.i.i.i.i, align 8
  %div.i.i.i.i = udiv i64 %60, %59
  %61 = mul i64 %div.i.i.i.i, %left.0..i.i.i
  br label %row_bytes.exit.i.i.i

row_bytes.exit.i.i.i:                             ; preds = %if.end.i.i.i.i, %lor.lhs.false.i.i.i.i, %if.then.i.i.i
  %retval.0.i.i.i.i = phi i64 [ %61, %if.end.i.i.i.i ], [ 0, %lor.lhs.false.i.i.i.i ], [ 0, %if.then.i.i.i ]
  %add.ptr.i.i.i = getelementptr inbounds nuw i8, ptr %56, i64 %retval.0.i.i.i.i
  store ptr %add.ptr.i.i.i, ptr %arrayidx13.i.i.i, align 8
  %inc.i.i.i = add nsw i32 %taken.086.i.i.i, 1
  br label %for.inc.i.i.i

for.inc.i.i.i:                                    ; preds = %row_bytes.exit.i.i.i, %for.body.i.i107.i
  %taken.1.i.i.i = phi i32 [ %taken.086.i.i.i, %for.body.i.i107.i ], [ %inc.i.i.i, %row_bytes.exit.i.i.i ]
  %indvars.iv.next.i.i110.i = add nuw nsw i64 %indvars.iv.i.i108.i, 1
  %exitcond.not.i.i111.i = icmp eq i64 %indvars.iv.next.i.i110.i, %wide.trip.count.i.i106.i
  br i1 %exitcond.not.i.i111.i, label %for.cond23.preheader.i.i.i, label %for.body.i.i107.i

for.cond.cleanup25.i.i.i:                         ; preds = %row_bytes.exit83.i.i.i, %for.cond23.preheader.i.i.i
  %sub.i.i.i = sub nsw i64 %left.0.i.i.i, %left.0..i.i.i
  call void @llvm.lifetime.end.p0(ptr nonnull %sizes1.i.i.i) #9
  %cmp42.i.i.i = icmp eq i32 %call7.i.i.i, 0
  %cmp43.i.i.i = icmp sgt i64 %sub.i.i.i, 0
  %62 = select i1 %cmp42.i.i.i, i1 %cmp43.i.i.i, i1 false
  br i1 %62, label %do.body.i.i.i, label %run_code.exit.i

for.body26.i.i.i:                                 ; preds = %row_bytes.exit83.i.i.i, %for.body26.preheader.i.i.i
  %indvars.iv90.i.i.i = phi i64 [ 0, %for.body26.preheader.i.i.i ], [ %indvars.iv.next91.i.i.i, %row_bytes.exit83.i.i.i ]
  %arrayidx29.i.i.i = getelementptr inbounds nuw ptr, ptr %vla6, i64 %indvars.iv90.i.i.i
  %63 = load ptr, ptr %arrayidx29.i.i.i, align 8
  %arrayidx32.i.i.i = getelementptr inbounds nuw %struct.Tensor, ptr %54, i64 %indvars.iv90.i.i.i
  %axes.i74.i.i.i = getelementptr inbounds nuw i8, ptr %arrayidx32.i.i.i, i64 16
  %64 = load ptr, ptr %axes.i74.i.i.i, align 8
  %tobool.not.i75.i.i.i = icmp eq ptr %64, null
  br i1 %tobool.not.i75.i.i.i, label %row_bytes.exit83.i.i.i, label %lor.lhs.false.i76.i.i.i

lor.lhs.false.i76.i.i.i:                          ; preds = %for.body26.i.i.i
  %dims.i77.i.i.i = getelementptr inbounds nuw i8, ptr %arrayidx32.i.i.i, i64 8
  %65 = load ptr, ptr %dims.i77.i.i.i, align 8
  %66 = load i64, ptr %65, align 8
  %cmp.i78.i.i.i = icmp eq i64 %66, 0
  br i1 %cmp.i78.i.i.i, label %row_bytes.exit83.i.i.i, label %if.end.i79.i.i.i

if.end.i79.i.i.i:                                 ; preds = %lor.lhs.false.i76.i.i.i
  %bytes.i80.i.i.i = getelementptr inbounds nuw i8, ptr %arrayidx32.i.i.i, i64 40
  %67 = load i64, ptr %bytes.i80.i.i.i, align 8
  %div.i81.i.i.i = udiv i64 %67, %66
  %68 = mul i64 %div.i81.i.i.i, %left.0..i.i.i
  br label %row_bytes.exit83.i.i.i

row_bytes.exit83.i.i.i:                           ; preds = %if.end.i79.i.i.i, %lor.lhs.false.i76.i.i.i, %for.body26.i.i.i
  %retval.0.i82.i.i.i = phi i64 [ %68, %if.end.i79.i.i.i ], [ 0, %lor.lhs.false.i76.i.i.i ], [ 0, %for.body26.i.i.i ]
  %add.ptr35.i.i.i = getelementptr inbounds nuw i8, ptr %63, i64 %retval.0.i82.i.i.i
  store ptr %add.ptr35.i.i.i, ptr %arrayidx29.i.i.i, align 8
  %indvars.iv.next91.i.i.i = add nuw nsw i64 %indvars.iv90.i.i.i, 1
  %exitcond94.not.i.i.i = icmp eq i64 %indvars.iv.next91.i.i.i, %wide.trip.count93.i.i.i
  br i1 %exitcond94.not.i.i.i, label %for.cond.cleanup25.i.i.i, label %for.body26.i.i.i

if.end4.i.i:                                      ; preds = %if.end.i103.i
  %run5.i.i = getelementptr inbounds nuw i8, ptr %state, i64 48
  %69 = load ptr, ptr %run5.i.i, align 8
  %call9.i.i = call i32 %69(ptr noundef nonnull %vla3, ptr noundef nonnull %vla6, ptr noundef nonnull %vla10, ptr noundef nonnull %retval.0.i100.i, ptr noundef nonnull @executor) #7
  br label %run_code.exit.i

run_code.exit.i:                                  ; preds = %for.cond.cleanup25.i.i.i, %if.end4.i.i, %if.then.i113.i
  %retval.0.i105.i = phi i32 [ %call1.i115.i, %if.then.i113.i ], [ %call9.i.i, %if.end4.i.i ], [ %call7.i.i.i, %for.cond.cleanup25.i.i.i ]
  switch i32 %retval.0.i105.i, label %if.then41.i [
    i32 1, label %if.then38.i
    i32 0, label %if.end42.i
  ]

if.then38.i:                                      ; preds = %run_code.exit.i
  call void @TF_SetStatus(ptr noundef %call14, i32 noundef 13, ptr noundef nonnull @.str.6) #7
  br label %run.exit

if.then41.i:                                      ; preds = %run_code.exit.i
  call void @TF_SetStatus(ptr noundef %call14, i32 noundef 13, ptr noundef nonnull @.str.7) #7
  br label %run.exit

if.end42.i:                                       ; preds = %run_code.exit.i
  call fastcc void @hand_over(ptr noundef readonly %state, ptr noundef %ctx, ptr noundef nonnull %call, ptr noundef %call14) #8
  br label %run.exit

run.exit:                                         ; preds = %aligned.exit.i, %take.exit.i, %if.then4.i, %hold_results.exit.i, %if.then34.i, %if.then38.i, %if.then41.i, %if.end42.i
  %70 = phi ptr [ null, %take.exit.i ], [ null, %if.then4.i ], [ %retval.0.i100.i, %if.end42.i ], [ null, %hold_results.exit.i ], [ null, %if.then34.i ], [ %retval.0.i100.i, %if.then38.i ], [ %retval.0.i100.i, %if.then41.i ], [ null, %aligned.exit.i ]
  %call15 = call i32 @TF_GetCode(ptr noundef %call14) #7
  %cmp16.not = icmp eq i32 %call15, 0
  br i1 %cmp16.not, label %if.end, label %if.then

for.body:                                         ; preds = %for.body.preheader, %for.body
  %indvars.iv = phi i64 [ 0, %for.body.preheader ], [ %indvars.iv.next, %for.body ]
  %arrayidx = getelementptr inbounds nuw ptr, ptr %vla, i64 %indvars.iv
  store ptr null, ptr %arrayidx, align 8
  %arrayidx12 = getelementptr inbounds nuw ptr, ptr %vla8, i64 %indvars.iv
  store ptr null, ptr %arrayidx12, align 8
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, %wide.trip.count
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body

if.then:                                          ; preds = %run.exit
  call void @TF_OpKernelContext_Failure(ptr noundef %ctx, ptr noundef %call14) #7
  br label %if.end

if.end:                                           ; preds = %if.then, %run.exit
  %tobool.not = icmp eq ptr %70, null
  br i1 %tobool.not, label %if.end20, label %if.then18

if.then18:                                        ; preds = %if.end
  %call.i = call i32 @pthread_mutex_lock(ptr noundef nonnull @workspace_mutex) #7
  %71 = load ptr, ptr @workspaces, align 8
  store ptr %71, ptr %70, align 8
  store ptr %70, ptr @workspaces, align 8
  %call1.i49 = call i32 @pthread_mutex_unlock(ptr noundef nonnull @workspace_mutex) #7
  br label %if.end20

if.end20:                                         ; preds = %if.then18, %if.end
  %cmp2358 = icmp sgt i32 %add, 0
  br i1 %cmp2358, label %for.body25.preheader, label %for.cond.cleanup24

for.body25.preheader:                             ; preds = %if.end20
  %wide.trip.count64 = zext nneg i32 %add to i64
  br label %for.body25

for.cond.cleanup24:                               ; preds = %for.body25, %if.end20
  %cmp7.i = icmp sgt i32 %add, 0
  br i1 %cmp7.i, label %for.body.preheader.i, label %give_back.exit

for.body.preheader.i:                             ; preds = %for.cond.cleanup24
  %wide.trip.count.i = zext nneg i32 %add to i64
  br label %for.body.i50

for.body.i50:                                     ; preds = %for.inc.i54, %for.body.preheader.i
  %indvars.iv.i51 = phi i64 [ 0, %for.body.preheader.i ], [ %indvars.iv.next.i55, %for.inc.i54 ]
  %arrayidx.i52 = getelementptr inbounds nuw ptr, ptr %vla, i64 %indvars.iv.i51
  %72 = load ptr, ptr %arrayidx.i52, align 8
  %tobool.not.i53 = icmp eq ptr %72, null
  br i1 %tobool.not.i53, label %for.inc.i54, label %if.then.i

if.then.i:                                        ; preds = %for.body.i50
  call void @TF_DeleteTensor(ptr noundef nonnull %72) #7
  br label %for.inc.i54

for.inc.i54:                                      ; preds = %if.then.i, %for.body.i50
  %indvars.iv.next.i55 = add nuw nsw i64 %indvars.iv.i51, 1
  %exitcond.not.i = icmp eq i64 %indvars.iv.next.i55, %wide.trip.count.i
  br i1 %exitcond.not.i, label %give_back.exit, label %for.body.i50

give_back.exit:                                   ; preds = %for.inc.i54, %for.cond.cleanup24
  call void @TF_DeleteStatus(ptr noundef %call14) #7
  call void @llvm.lifetime.end.p0(ptr nonnull %call) #9
  ret void

for.body25:                                       ; preds = %for.body25.preheader, %for.body25
  %indvars.iv61 = phi i64 [ 0, %for.body25.preheader ], [ %indvars.iv.next62, %for.body25 ]
  %arrayidx27 = getelementptr inbounds nuw ptr, ptr %vla8, i64 %indvars.iv61
  %73 = load ptr, ptr %arrayidx27, align 8
  call void @free(ptr noundef %73) #7
  %indvars.iv.next62 = add nuw nsw i64 %indvars.iv61, 1
  %exitcond65.not = icmp eq i64 %indvars.iv.next62, %wide.trip.count64
  br i1 %exitcond65.not, label %for.cond.cleanup24, label %for.body25
}

; Function Attrs: nounwind
define internal void @fits_compute(ptr noundef readonly captures(none) %state, ptr noundef %ctx) #0 {
entry:
  %call = tail call ptr @TF_NewStatus() #7
  %arg_count = getelementptr inbounds nuw i8, ptr %state, i64 72
  %0 = load i32, ptr %arg_count, align 8
  %add = add nsw i32 %0, 1
  %1 = zext i32 %add to i64
  %vla = alloca ptr, i64 %1, align 16
  %size_count = getelementptr inbounds nuw i8, ptr %state, i64 80
  %2 = load i32, ptr %size_count, align 8
  %add1 = add nsw i32 %2, 1
  %3 = zext i32 %add1 to i64
  %vla2 = alloca i64, i64 %3, align 16
  %cmp49 = icmp sgt i32 %0, 0
  br i1 %cmp49, label %for.body.preheader, label %for.cond.cleanup

for.body.preheader:                               ; preds = %entry
  %wide.trip.count = zext nneg i32 %0 to i64
  br label %for.body

for.cond.cleanup:                                 ; preds = %for.body, %entry
  %supported = getelementptr inbounds nuw i8, ptr %state, i64 56
  %4 = load ptr, ptr %supported, align 8
  %call4 = tail call i32 %4() #7
  %cmp5 = icmp ne i32 %call4, 0
  %conv = zext i1 %cmp5 to i32
  br i1 %cmp5, label %if.then, label %if.end

for.body:                                         ; preds = %for.body.preheader, %for.body
  %indvars.iv = phi i64 [ 0, %for.body.preheader ], [ %indvars.iv.next, %for.body ]
  %arrayidx = getelementptr inbounds nuw ptr, ptr %vla, i64 %indvars.iv
  store ptr null, ptr %arrayidx, align 8
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, %wide.trip.count
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body

if.then:                                          ; preds = %for.cond.cleanup
  %5 = load i32, ptr %arg_count, align 8
  %cmp6.i = icmp sgt i32 %5, 0
  br i1 %cmp6.i, label %land.rhs.i, label %if.end

land.rhs.i:                                       ; preds = %if.then, %for.body.i
  %indvars.iv.i = phi i64 [ %indvars.iv.next.i, %for.body.i ], [ 0, %if.then ]
  %call.i = call i32 @TF_GetCode(ptr noundef %call) #7
  %cmp1.i = icmp eq i32 %call.i, 0
  br i1 %cmp1.i, label %for.body.i, label %if.end

for.body.i:                                       ; preds = %land.rhs.i
  %arrayidx.i = getelementptr inbounds nuw ptr, ptr %vla, i64 %indvars.iv.i
  %6 = trunc nuw nsw i64 %indvars.iv.i to i32
  call void @TF_GetInput(ptr noundef %ctx, i32 noundef %6, ptr noundef nonnull %arrayidx.i, ptr noundef %call) #7
  %indvars.iv.next.i = add nuw nsw i64 %indvars.iv.i, 1
  %7 = load i32, ptr %arg_count, align 8
  %8 = sext i32 %7 to i64
  %cmp.i = icmp slt i64 %indvars.iv.next.i, %8
  br i1 %cmp.i, label %land.rhs.i, label %if.end

if.end:                                           ; preds = %for.body.i, %land.rhs.i, %if.then, %for.cond.cleanup
  %call6 = call i32 @TF_GetCode(ptr noundef %call) #7
  %cmp7 = icmp eq i32 %call6, 0
  br i1 %cmp7, label %if.then9, label %if.end14

if.then9:                                         ; preds = %if.end
  br i1 %cmp5, label %land.rhs, label %land.end

land.rhs:                                         ; preds = %if.then9
  %call11 = call fastcc i32 @fits(ptr noundef %state, ptr noundef nonnull %vla, ptr noundef nonnull %vla2) #8
  br label %land.end

land.end:                                         ; preds = %land.rhs, %if.then9
  %land.ext = phi i32 [ 0, %if.then9 ], [ %call11, %land.rhs ]
  %call13 = call ptr @TF_AllocateOutput(ptr noundef %ctx, i32 noundef 0, i32 noundef 10, ptr noundef null, i32 noundef 0, i64 noundef 1, ptr noundef %call) #7
  br label %if.end14

if.end14:                                         ; preds = %land.end, %if.end
  %out.0 = phi ptr [ %call13, %land.end ], [ null, %if.end ]
  %yes.0 = phi i32 [ %land.ext, %land.end ], [ %conv, %if.end ]
  %call15 = call i32 @TF_GetCode(ptr noundef %call) #7
  %cmp16 = icmp eq i32 %call15, 0
  br i1 %cmp16, label %if.then18, label %if.else

if.then18:                                        ; preds = %if.end14
  %conv19 = trunc nuw nsw i32 %yes.0 to i8
  %call20 = call ptr @TF_TensorData(ptr noundef %out.0) #7
  store i8 %conv19, ptr %call20, align 1
  br label %if.end21

if.else:                                          ; preds = %if.end14
  call void @TF_OpKernelContext_Failure(ptr noundef %ctx, ptr noundef %call) #7
  br label %if.end21

if.end21:                                         ; preds = %if.else, %if.then18
  %tobool22.not = icmp eq ptr %out.0, null
  br i1 %tobool22.not, label %if.end24, label %if.then23

if.then23:                                        ; preds = %if.end21
  call void @TF_DeleteTensor(ptr noundef nonnull %out.0) #7
  br label %if.end24

if.end24:                                         ; preds = %if.then23, %if.end21
  %9 = load i32, ptr %arg_count, align 8
  %cmp7.i = icmp sgt i32 %9, 0
  br i1 %cmp7.i, label %for.body.preheader.i, label %give_back.exit

for.body.preheader.i:                             ; preds = %if.end24
  %wide.trip.count.i = zext nneg i32 %9 to i64
  br label %for.body.i45

for.body.i45:                                     ; preds = %for.inc.i, %for.body.preheader.i
  %indvars.iv.i46 = phi i64 [ 0, %for.body.preheader.i ], [ %indvars.iv.next.i48, %for.inc.i ]
  %arrayidx.i47 = getelementptr inbounds nuw ptr, ptr %vla, i64 %indvars.iv.i46
  %10 = load ptr, ptr %arrayidx.i47, align 8
  %tobool.not.i = icmp eq ptr %10, null
  br i1 %tobool.not.i, label %for.inc.i, label %if.then.i

if.then.i:                                        ; preds = %for.body.i45
  call void @TF_DeleteTensor(ptr noundef nonnull %10) #7
  br label %for.inc.i

for.inc.i:                                        ; preds = %if.then.i, %for.body.i45
  %indvars.iv.next.i48 = add nuw nsw i64 %indvars.iv.i46, 1
  %exitcond.not.i = icmp eq i64 %indvars.iv.next.i48, %wide.trip.count.i
  br i1 %exitcond.not.i, label %give_back.exit, label %for.body.i45

give_back.exit:                                   ; preds = %for.inc.i, %if.end24
  call void @TF_DeleteStatus(ptr noundef %call) #7
  ret void
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none)
define internal void @destroy(ptr readnone captures(none) %state) #3 {
entry:
  ret void
}

declare void @TF_RegisterKernelBuilder(ptr noundef, ptr noundef, ptr noundef) local_unnamed_addr #1

; Function Attrs: mustprogress nocallback nofree nounwind willreturn memory(argmem: write)
declare void @llvm.memset.p0.i64(ptr writeonly captures(none), i8, i64, i1 immarg) #4

declare extern_weak ptr @TF_GetRegisteredKernelsForOp(ptr noundef, ptr noundef) #1

declare extern_weak void @TF_DeleteBuffer(ptr noundef) #1

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn
declare ptr @llvm.stacksave.p0() #5

declare void @TF_OpKernelContext_Failure(ptr noundef, ptr noundef) local_unnamed_addr #1

declare void @free(ptr noundef) local_unnamed_addr #1

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn
declare void @llvm.stackrestore.p0(ptr) #5

; Function Attrs: nounwind
define internal fastcc range(i32 0, 2) i32 @fits(ptr noundef readonly captures(none) %c, ptr noundef readonly captures(none) %args, ptr noundef captures(none) %sizes) unnamed_addr #0 {
entry:
  %number.i = alloca i64, align 8
  %other.i = alloca i64, align 8
  %small.i = alloca i32, align 4
  %small_other.i = alloca i32, align 4
  %size_count = getelementptr inbounds nuw i8, ptr %c, i64 80
  %0 = load i32, ptr %size_count, align 8
  %cmp87 = icmp sgt i32 %0, 0
  br i1 %cmp87, label %for.body.preheader, label %for.cond2.preheader

for.body.preheader:                               ; preds = %entry
  %wide.trip.count = zext nneg i32 %0 to i64
  br label %for.body

for.cond2.preheader:                              ; preds = %for.body, %entry
  %arg_count = getelementptr inbounds nuw i8, ptr %c, i64 72
  %1 = load i32, ptr %arg_count, align 8
  %cmp3.not91 = icmp sgt i32 %1, 0
  br i1 %cmp3.not91, label %for.body5.lr.ph, label %for.cond15.preheader.loopexit

for.body5.lr.ph:                                  ; preds = %for.cond2.preheader
  %args6 = getelementptr inbounds nuw i8, ptr %c, i64 16
  %sizes17.i.i = getelementptr inbounds nuw i8, ptr %c, i64 64
  %by_rows.i.i = getelementptr inbounds nuw i8, ptr %c, i64 88
  br label %for.body5

for.body:                                         ; preds = %for.body.preheader, %for.body
  %indvars.iv = phi i64 [ 0, %for.body.preheader ], [ %indvars.iv.next, %for.body ]
  %arrayidx = getelementptr inbounds nuw i64, ptr %sizes, i64 %indvars.iv
  store i64 -1, ptr %arrayidx, align 8
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, %wide.trip.count
  br i1 %exitcond.not, label %for.cond2.preheader, label %for.body

for.body5:                                        ; preds = %for.body5.lr.ph, %for.inc11
  %indvars.iv103 = phi i64 [ 0, %for.body5.lr.ph ], [ %indvars.iv.next104, %for.inc11 ]
  %2 = load ptr, ptr %args6, align 8
  %arrayidx8 = getelementptr inbounds nuw %struct.Tensor, ptr %2, i64 %indvars.iv103
  %arrayidx10 = getelementptr inbounds nuw ptr, ptr %args, i64 %indvars.iv103
  %3 = load ptr, ptr %arrayidx10, align 8
  %call.i = tail call i32 @TF_NumDims(ptr noundef %3) #7
  %rank.i = getelementptr inbounds nuw i8, ptr %arrayidx8, i64 56
  %4 = load i32, ptr %rank.i, align 8
  %cmp.not.i = icmp eq i32 %call.i, %4
  br i1 %cmp.not.i, label %for.cond.preheader.i, label %return

for.cond.preheader.i:                             ; preds = %for.body5
  %cmp2.not13.i = icmp slt i32 %4, 1
  br i1 %cmp2.not13.i, label %for.inc11, label %for.body.lr.ph.i

for.body.lr.ph.i:                                 ; preds = %for.cond.preheader.i
  %axes.i.i = getelementptr inbounds nuw i8, ptr %arrayidx8, i64 16
  %dims.i.i = getelementptr inbounds nuw i8, ptr %arrayidx8, i64 8
  br label %for.body.i

for.body.i:                                       ; preds = %for.inc.i, %for.body.lr.ph.i
  %indvars.iv.i = phi i64 [ 0, %for.body.lr.ph.i ], [ %indvars.iv.next.i, %for.inc.i ]
  %5 = trunc nuw nsw i64 %indvars.iv.i to i32
  %call3.i = tail call i64 @TF_Dim(ptr noundef %3, i32 noundef %5) #7
  %6 = load ptr, ptr %axes.i.i, align 8
  %tobool.not.i.i = icmp eq ptr %6, null
  br i1 %tobool.not.i.i, label %cond.end.i.i, label %cond.true.i.i

cond.true.i.i:                                    ; preds = %for.body.i
  %arrayidx.i.i = getelementptr inbounds nuw i32, ptr %6, i64 %indvars.iv.i
  %7 = load i32, ptr %arrayidx.i.i, align 4
  br label %cond.end.i.i

cond.end.i.i:                                     ; preds = %cond.true.i.i, %for.body.i
  %cond.i.i = phi i32 [ %7, %cond.true.i.i ], [ -1, %for.body.i ]
  %cmp.i.i = icmp slt i32 %cond.i.i, 0
  br i1 %cmp.i.i, label %if.then.i.i, label %if.end.i.i

if.then.i.i:                                      ; preds = %cond.end.i.i
  %8 = load ptr, ptr %dims.i.i, align 8
  %arrayidx3.i.i = getelementptr inbounds nuw i64, ptr %8, i64 %indvars.iv.i
  %9 = load i64, ptr %arrayidx3.i.i, align 8
  %cmp4.i.i = icmp eq i64 %call3.i, %9
  br label %dim_fits.exit.i

if.end.i.i:                                       ; preds = %cond.end.i.i
  %idxprom5.i.i = zext nneg i32 %cond.i.i to i64
  %arrayidx6.i.i = getelementptr inbounds nuw i64, ptr %sizes, i64 %idxprom5.i.i
  %10 = load i64, ptr %arrayidx6.i.i, align 8
  %cmp7.i.i = icmp slt i64 %10, 0
  br i1 %cmp7.i.i, label %if.then9.i.i, label %if.end12.i.i

if.then9.i.i:                                     ; preds = %if.end.i.i
  store i64 %call3.i, ptr %arrayidx6.i.i, align 8
  br label %if.end12.i.i

if.end12.i.i:                                     ; preds = %if.then9.i.i, %if.end.i.i
  %11 = load i64, ptr %arrayidx6.i.i, align 8
  %cmp15.i.i = icmp eq i64 %call3.i, %11
  br i1 %cmp15.i.i, label %land.lhs.true.i.i, label %return

land.lhs.true.i.i:                                ; preds = %if.end12.i.i
  %12 = load ptr, ptr %sizes17.i.i, align 8
  %arrayidx19.i.i = getelementptr inbounds nuw %struct.Size, ptr %12, i64 %idxprom5.i.i
  %13 = load i64, ptr %arrayidx19.i.i, align 8
  %cmp20.not.i.i = icmp slt i64 %call3.i, %13
  br i1 %cmp20.not.i.i, label %return, label %land.rhs.i.i

land.rhs.i.i:                                     ; preds = %land.lhs.true.i.i
  %14 = load i32, ptr %by_rows.i.i, align 8
  %tobool22.not.i.i = icmp eq i32 %14, 0
  br i1 %tobool22.not.i.i, label %lor.rhs.i.i, label %for.inc.i

lor.rhs.i.i:                                      ; preds = %land.rhs.i.i
  %most.i.i = getelementptr inbounds nuw i8, ptr %arrayidx19.i.i, i64 8
  %15 = load i64, ptr %most.i.i, align 8
  %cmp26.i.i = icmp sle i64 %call3.i, %15
  br label %dim_fits.exit.i

dim_fits.exit.i:                                  ; preds = %lor.rhs.i.i, %if.then.i.i
  %retval.0.shrunk.i.i = phi i1 [ %cmp4.i.i, %if.then.i.i ], [ %cmp26.i.i, %lor.rhs.i.i ]
  br i1 %retval.0.shrunk.i.i, label %for.inc.i, label %return

for.inc.i:                                        ; preds = %dim_fits.exit.i, %land.rhs.i.i
  %indvars.iv.next.i = add nuw nsw i64 %indvars.iv.i, 1
  %16 = load i32, ptr %rank.i, align 8
  %17 = sext i32 %16 to i64
  %cmp2.not.not.i = icmp slt i64 %indvars.iv.next.i, %17
  br i1 %cmp2.not.not.i, label %for.body.i, label %for.inc11

for.inc11:                                        ; preds = %for.inc.i, %for.cond.preheader.i
  %indvars.iv.next104 = add nuw nsw i64 %indvars.iv103, 1
  %18 = load i32, ptr %arg_count, align 8
  %19 = sext i32 %18 to i64
  %cmp3.not = icmp slt i64 %indvars.iv.next104, %19
  br i1 %cmp3.not, label %for.body5, label %for.cond15.preheader.loopexit

for.cond15.preheader.loopexit:                    ; preds = %for.inc11, %for.cond2.preheader
  %arg_count.le90 = getelementptr inbounds nuw i8, ptr %c, i64 72
  %given_count = getelementptr inbounds nuw i8, ptr %c, i64 84
  %20 = load i32, ptr %given_count, align 4
  %cmp16.not94 = icmp sgt i32 %20, 0
  br i1 %cmp16.not94, label %for.body18.preheader, label %for.cond30.preheader

for.body18.preheader:                             ; preds = %for.cond15.preheader.loopexit
  %wide.trip.count109 = zext nneg i32 %20 to i64
  br label %for.body18

for.cond15:                                       ; preds = %for.body18
  %indvars.iv.next107 = add nuw nsw i64 %indvars.iv106, 1
  %exitcond110.not = icmp eq i64 %indvars.iv.next107, %wide.trip.count109
  br i1 %exitcond110.not, label %for.cond30.preheader, label %for.body18

for.body18:                                       ; preds = %for.body18.preheader, %for.cond15
  %indvars.iv106 = phi i64 [ 0, %for.body18.preheader ], [ %indvars.iv.next107, %for.cond15 ]
  %arrayidx20 = getelementptr inbounds nuw i64, ptr %sizes, i64 %indvars.iv106
  %21 = load i64, ptr %arrayidx20, align 8
  %cmp21 = icmp slt i64 %21, 0
  br i1 %cmp21, label %return, label %for.cond15

for.cond30.preheader:                             ; preds = %for.cond15, %for.cond15.preheader.loopexit
  %22 = load i32, ptr %arg_count.le90, align 8
  %cmp32.not97 = icmp slt i32 %22, 1
  br i1 %cmp32.not97, label %return, label %for.body34.lr.ph

for.body34.lr.ph:                                 ; preds = %for.cond30.preheader
  %args35 = getelementptr inbounds nuw i8, ptr %c, i64 16
  br label %for.body34

for.body34:                                       ; preds = %for.body34.lr.ph, %for.inc45
  %indvars.iv111 = phi i64 [ 0, %for.body34.lr.ph ], [ %indvars.iv.next112, %for.inc45 ]
  %23 = load ptr, ptr %args35, align 8
  %arrayidx37 = getelementptr inbounds nuw %struct.Tensor, ptr %23, i64 %indvars.iv111
  %arrayidx39 = getelementptr inbounds nuw ptr, ptr %args, i64 %indvars.iv111
  %24 = load ptr, ptr %arrayidx39, align 8
  %call40 = call ptr @TF_TensorData(ptr noundef %24) #7
  %value.i = getelementptr inbounds nuw i8, ptr %arrayidx37, i64 24
  %25 = load ptr, ptr %value.i, align 8
  %tobool.not.i = icmp eq ptr %25, null
  br i1 %tobool.not.i, label %for.inc45, label %lor.lhs.false.i

lor.lhs.false.i:                                  ; preds = %for.body34
  %bytes.i = getelementptr inbounds nuw i8, ptr %arrayidx37, i64 40
  %26 = load i64, ptr %bytes.i, align 8
  %cmp.i = icmp eq i64 %26, 0
  br i1 %cmp.i, label %for.inc45, label %if.end.i

if.end.i:                                         ; preds = %lor.lhs.false.i
  %value_sizes.i = getelementptr inbounds nuw i8, ptr %arrayidx37, i64 32
  %27 = load ptr, ptr %value_sizes.i, align 8
  %tobool1.not.i = icmp eq ptr %27, null
  br i1 %tobool1.not.i, label %if.then2.i, label %for.cond.preheader.i72

for.cond.preheader.i72:                           ; preds = %if.end.i
  %align.i = getelementptr inbounds nuw i8, ptr %arrayidx37, i64 48
  %28 = load i32, ptr %align.i, align 8
  %conv870.i = zext i32 %28 to i64
  %cmp9.not72.i = icmp ult i64 %26, %conv870.i
  br i1 %cmp9.not72.i, label %for.inc45, label %for.body.i73

if.then2.i:                                       ; preds = %if.end.i
  %call.i74 = call i32 @memcmp(ptr noundef nonnull %25, ptr noundef %call40, i64 noundef %26) #7
  %cmp5.i.not = icmp eq i32 %call.i74, 0
  br i1 %cmp5.i.not, label %for.inc45, label %return

for.cond.i:                                       ; preds = %if.end28.i
  %inc.i = add nuw i64 %i.073.i, 1
  %29 = load i64, ptr %bytes.i, align 8
  %30 = load i32, ptr %align.i, align 8
  %conv8.i = zext i32 %30 to i64
  %div.i = udiv i64 %29, %conv8.i
  %cmp9.not.not.i = icmp ult i64 %inc.i, %div.i
  br i1 %cmp9.not.not.i, label %for.body.i73, label %for.inc45

for.body.i73:                                     ; preds = %for.cond.preheader.i72, %for.cond.i
  %conv874.i = phi i64 [ %conv8.i, %for.cond.i ], [ %conv870.i, %for.cond.preheader.i72 ]
  %31 = phi i32 [ %30, %for.cond.i ], [ %28, %for.cond.preheader.i72 ]
  %i.073.i = phi i64 [ %inc.i, %for.cond.i ], [ 0, %for.cond.preheader.i72 ]
  call void @llvm.lifetime.start.p0(ptr nonnull %number.i) #9
  store i64 0, ptr %number.i, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %other.i) #9
  store i64 0, ptr %other.i, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %small.i) #9
  store i32 0, ptr %small.i, align 4
  call void @llvm.lifetime.start.p0(ptr nonnull %small_other.i) #9
  store i32 0, ptr %small_other.i, align 4
  %32 = load ptr, ptr %value.i, align 8
  %mul.i = mul i64 %i.073.i, %conv874.i
  %add.ptr.i = getelementptr inbounds nuw i8, ptr %32, i64 %mul.i
  %add.ptr17.i = getelementptr inbounds nuw i8, ptr %call40, i64 %mul.i
  %cmp19.i = icmp eq i32 %31, 8
  br i1 %cmp19.i, label %if.then21.i, label %if.else.i

if.then21.i:                                      ; preds = %for.body.i73
  %call22.i = call ptr @memcpy(ptr noundef nonnull %number.i, ptr noundef %add.ptr.i, i64 noundef 8) #7
  %call23.i = call ptr @memcpy(ptr noundef nonnull %other.i, ptr noundef %add.ptr17.i, i64 noundef 8) #7
  br label %if.end28.i

if.else.i:                                        ; preds = %for.body.i73
  %call24.i = call ptr @memcpy(ptr noundef nonnull %small.i, ptr noundef %add.ptr.i, i64 noundef 4) #7
  %call25.i = call ptr @memcpy(ptr noundef nonnull %small_other.i, ptr noundef %add.ptr17.i, i64 noundef 4) #7
  %33 = load i32, ptr %small.i, align 4
  %conv26.i = sext i32 %33 to i64
  store i64 %conv26.i, ptr %number.i, align 8
  %34 = load i32, ptr %small_other.i, align 4
  %conv27.i = sext i32 %34 to i64
  store i64 %conv27.i, ptr %other.i, align 8
  br label %if.end28.i

if.end28.i:                                       ; preds = %if.else.i, %if.then21.i
  %35 = load i64, ptr %other.i, align 8
  %36 = load ptr, ptr %value_sizes.i, align 8
  %arrayidx.i = getelementptr inbounds nuw i32, ptr %36, i64 %i.073.i
  %37 = load i32, ptr %arrayidx.i, align 4
  %cmp30.i = icmp slt i32 %37, 0
  %idxprom.i = zext nneg i32 %37 to i64
  %arrayidx34.i = getelementptr inbounds nuw i64, ptr %sizes, i64 %idxprom.i
  %cond.in.i = select i1 %cmp30.i, ptr %number.i, ptr %arrayidx34.i
  %cond.i = load i64, ptr %cond.in.i, align 8
  %cmp35.not.i = icmp eq i64 %35, %cond.i
  call void @llvm.lifetime.end.p0(ptr nonnull %small_other.i) #9
  call void @llvm.lifetime.end.p0(ptr nonnull %small.i) #9
  call void @llvm.lifetime.end.p0(ptr nonnull %other.i) #9
  call void @llvm.lifetime.end.p0(ptr nonnull %number.i) #9
  br i1 %cmp35.not.i, label %for.cond.i, label %return

for.inc45:                                        ; preds = %for.cond.i, %for.body34, %lor.lhs.false.i, %for.cond.preheader.i72, %if.then2.i
  %indvars.iv.next112 = add nuw nsw i64 %indvars.iv111, 1
  %38 = load i32, ptr %arg_count.le90, align 8
  %39 = sext i32 %38 to i64
  %cmp32.not.not = icmp slt i64 %indvars.iv.next112, %39
  br i1 %cmp32.not.not, label %for.body34, label %return

return:                                           ; preds = %for.body5, %land.lhs.true.i.i, %if.end12.i.i, %dim_fits.exit.i, %for.body18, %if.then2.i, %for.inc45, %if.end28.i, %for.cond30.preheader
  %retval.3 = phi i32 [ 0, %land.lhs.true.i.i ], [ 0, %for.body18 ], [ 0, %if.end28.i ], [ 1, %for.cond30.preheader ], [ 0, %if.then2.i ], [ 1, %for.inc45 ], [ 0, %dim_fits.exit.i ], [ 0, %if.end12.i.i ], [ 0, %for.body5 ]
  ret i32 %retval.3
}

declare void @TF_SetStatus(ptr noundef, i32 noundef, ptr noundef) local_unnamed_addr #1

declare ptr @TF_TensorData(ptr noundef) local_unnamed_addr #1

; Function Attrs: nounwind
define internal fastcc void @hand_over(ptr noundef readonly captures(none) %c, ptr noundef %ctx, ptr noundef nonnull readonly captures(none) %call, ptr noundef %status) unnamed_addr #0 {
entry:
  %result_count = getelementptr inbounds nuw i8, ptr %c, i64 76
  %0 = load i32, ptr %result_count, align 4
  %cmp44 = icmp sgt i32 %0, 0
  br i1 %cmp44, label %for.body.lr.ph, label %cleanup24

for.body.lr.ph:                                   ; preds = %entry
  %copies = getelementptr inbounds nuw i8, ptr %call, i64 24
  %arg_count = getelementptr inbounds nuw i8, ptr %c, i64 72
  %results = getelementptr inbounds nuw i8, ptr %c, i64 24
  %sizes = getelementptr inbounds nuw i8, ptr %call, i64 32
  br label %for.body

for.body:                                         ; preds = %for.body.lr.ph, %for.inc
  %indvars.iv = phi i64 [ 0, %for.body.lr.ph ], [ %indvars.iv.next, %for.inc ]
  %1 = load ptr, ptr %copies, align 8
  %2 = load i32, ptr %arg_count, align 8
  %3 = trunc nuw nsw i64 %indvars.iv to i32
  %add = add nsw i32 %2, %3
  %idxprom = sext i32 %add to i64
  %arrayidx = getelementptr inbounds ptr, ptr %1, i64 %idxprom
  %4 = load ptr, ptr %arrayidx, align 8
  %tobool.not = icmp eq ptr %4, null
  br i1 %tobool.not, label %cleanup23, label %if.end

if.end:                                           ; preds = %for.body
  %5 = load ptr, ptr %results, align 8
  %arrayidx2 = getelementptr inbounds nuw %struct.Tensor, ptr %5, i64 %indvars.iv
  %6 = load ptr, ptr %sizes, align 8
  %7 = trunc nuw nsw i64 %indvars.iv to i32
  %call3 = tail call fastcc ptr @allocated(ptr noundef %arrayidx2, ptr noundef %ctx, i32 noundef %7, ptr noundef %6, ptr noundef %status) #8
  %call4 = tail call i32 @TF_GetCode(ptr noundef %status) #7
  %cmp5.not = icmp eq i32 %call4, 0
  br i1 %cmp5.not, label %if.end7, label %cleanup23

if.end7:                                          ; preds = %if.end
  %8 = load ptr, ptr %call, align 8
  %9 = load i32, ptr %arg_count, align 8
  %10 = trunc nuw nsw i64 %indvars.iv to i32
  %add9 = add nsw i32 %9, %10
  %idxprom10 = sext i32 %add9 to i64
  %arrayidx11 = getelementptr inbounds ptr, ptr %8, i64 %idxprom10
  store ptr %call3, ptr %arrayidx11, align 8
  %11 = tail call ptr @llvm.stacksave.p0()
  %call16 = tail call ptr @TF_TensorData(ptr noundef %call3) #7
  %12 = load ptr, ptr %results, align 8
  %arrayidx19 = getelementptr inbounds nuw %struct.Tensor, ptr %12, i64 %indvars.iv
  %13 = load ptr, ptr %sizes, align 8
  %align.i = getelementptr inbounds nuw i8, ptr %arrayidx19, i64 48
  %14 = load i32, ptr %align.i, align 8
  %conv.i = zext i32 %14 to i64
  %rank.i = getelementptr inbounds nuw i8, ptr %arrayidx19, i64 56
  %15 = load i32, ptr %rank.i, align 8
  %cmp30.i = icmp sgt i32 %15, 0
  br i1 %cmp30.i, label %for.body.lr.ph.i, label %dims_of.exit

for.body.lr.ph.i:                                 ; preds = %if.end7
  %axes.i = getelementptr inbounds nuw i8, ptr %arrayidx19, i64 16
  %16 = load ptr, ptr %axes.i, align 8
  %tobool.not.i = icmp eq ptr %16, null
  %dims6.i = getelementptr inbounds nuw i8, ptr %arrayidx19, i64 8
  %wide.trip.count.i = zext nneg i32 %15 to i64
  br label %for.body.i

for.body.i:                                       ; preds = %cond.end12.i, %for.body.lr.ph.i
  %indvars.iv.i = phi i64 [ 0, %for.body.lr.ph.i ], [ %indvars.iv.next.i, %cond.end12.i ]
  %bytes.032.i = phi i64 [ %conv.i, %for.body.lr.ph.i ], [ %mul.i, %cond.end12.i ]
  br i1 %tobool.not.i, label %cond.end.i, label %cond.true.i

cond.true.i:                                      ; preds = %for.body.i
  %arrayidx.i = getelementptr inbounds nuw i32, ptr %16, i64 %indvars.iv.i
  %17 = load i32, ptr %arrayidx.i, align 4
  br label %cond.end.i

cond.end.i:                                       ; preds = %cond.true.i, %for.body.i
  %cond.i = phi i32 [ %17, %cond.true.i ], [ -1, %for.body.i ]
  %cmp3.i = icmp slt i32 %cond.i, 0
  br i1 %cmp3.i, label %cond.true5.i, label %cond.false9.i

cond.true5.i:                                     ; preds = %cond.end.i
  %18 = load ptr, ptr %dims6.i, align 8
  %arrayidx8.i = getelementptr inbounds nuw i64, ptr %18, i64 %indvars.iv.i
  br label %cond.end12.i

cond.false9.i:                                    ; preds = %cond.end.i
  %idxprom10.i = zext nneg i32 %cond.i to i64
  %arrayidx11.i = getelementptr inbounds nuw i64, ptr %13, i64 %idxprom10.i
  br label %cond.end12.i

cond.end12.i:                                     ; preds = %cond.false9.i, %cond.true5.i
  %cond13.in.i = phi ptr [ %arrayidx8.i, %cond.true5.i ], [ %arrayidx11.i, %cond.false9.i ]
  %cond13.i = load i64, ptr %cond13.in.i, align 8
  %mul.i = mul i64 %cond13.i, %bytes.032.i
  %indvars.iv.next.i = add nuw nsw i64 %indvars.iv.i, 1
  %exitcond.not.i = icmp eq i64 %indvars.iv.next.i, %wide.trip.count.i
  br i1 %exitcond.not.i, label %dims_of.exit, label %for.body.i

dims_of.exit:                                     ; preds = %cond.end12.i, %if.end7
  %bytes.0.lcssa.i = phi i64 [ %conv.i, %if.end7 ], [ %mul.i, %cond.end12.i ]
  %call22 = tail call ptr @memcpy(ptr noundef %call16, ptr noundef nonnull %4, i64 noundef %bytes.0.lcssa.i) #7
  call void @llvm.stackrestore.p0(ptr %11)
  br label %cleanup23

cleanup23:                                        ; preds = %dims_of.exit, %if.end, %for.body
  %cleanup.dest.slot.1 = phi i32 [ 4, %for.body ], [ 0, %dims_of.exit ], [ 1, %if.end ]
  switch i32 %cleanup.dest.slot.1, label %cleanup24 [
    i32 0, label %for.inc
    i32 4, label %for.inc
  ]

for.inc:                                          ; preds = %cleanup23, %cleanup23
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %19 = load i32, ptr %result_count, align 4
  %20 = sext i32 %19 to i64
  %cmp = icmp slt i64 %indvars.iv.next, %20
  br i1 %cmp, label %for.body, label %cleanup24

cleanup24:                                        ; preds = %cleanup23, %for.inc, %entry
  ret void
}

declare void @TF_GetInput(ptr noundef, i32 noundef, ptr noundef, ptr noundef) local_unnamed_addr #1

declare i32 @TF_NumDims(ptr noundef) local_unnamed_addr #1

declare i64 @TF_Dim(ptr noundef, i32 noundef) local_unnamed_addr #1

declare i32 @memcmp(ptr noundef, ptr noundef, i64 noundef) local_unnamed_addr #1

declare ptr @memcpy(ptr noundef, ptr noundef, i64 noundef) local_unnamed_addr #1

declare ptr @malloc(i64 noundef) local_unnamed_addr #1

; Function Attrs: nounwind
define internal fastcc ptr @allocated(ptr noundef readonly captures(none) %r, ptr noundef %ctx, i32 noundef %i, ptr noundef readonly captures(none) %sizes, ptr noundef %status) unnamed_addr #0 {
entry:
  %rank = getelementptr inbounds nuw i8, ptr %r, i64 56
  %0 = load i32, ptr %rank, align 8
  %add = add nsw i32 %0, 1
  %1 = zext i32 %add to i64
  %vla = alloca i64, i64 %1, align 16
  %align.i = getelementptr inbounds nuw i8, ptr %r, i64 48
  %2 = load i32, ptr %align.i, align 8
  %conv.i = zext i32 %2 to i64
  %cmp30.i = icmp sgt i32 %0, 0
  br i1 %cmp30.i, label %for.body.lr.ph.i, label %dims_of.exit

for.body.lr.ph.i:                                 ; preds = %entry
  %axes.i = getelementptr inbounds nuw i8, ptr %r, i64 16
  %3 = load ptr, ptr %axes.i, align 8
  %tobool.not.i = icmp eq ptr %3, null
  %dims6.i = getelementptr inbounds nuw i8, ptr %r, i64 8
  %wide.trip.count.i = zext nneg i32 %0 to i64
  br label %for.body.i

for.body.i:                                       ; preds = %cond.end12.i, %for.body.lr.ph.i
  %indvars.iv.i = phi i64 [ 0, %for.body.lr.ph.i ], [ %indvars.iv.next.i, %cond.end12.i ]
  %bytes.032.i = phi i64 [ %conv.i, %for.body.lr.ph.i ], [ %mul.i, %cond.end12.i ]
  br i1 %tobool.not.i, label %cond.end.i, label %cond.true.i

cond.true.i:                                      ; preds = %for.body.i
  %arrayidx.i = getelementptr inbounds nuw i32, ptr %3, i64 %indvars.iv.i
  %4 = load i32, ptr %arrayidx.i, align 4
  br label %cond.end.i

cond.end.i:                                       ; preds = %cond.true.i, %for.body.i
  %cond.i = phi i32 [ %4, %cond.true.i ], [ -1, %for.body.i ]
  %cmp3.i = icmp slt i32 %cond.i, 0
  br i1 %cmp3.i, label %cond.true5.i, label %cond.false9.i

cond.true5.i:                                     ; preds = %cond.end.i
  %5 = load ptr, ptr %dims6.i, align 8
  %arrayidx8.i = getelementptr inbounds nuw i64, ptr %5, i64 %indvars.iv.i
  br label %cond.end12.i

cond.false9.i:                                    ; preds = %cond.end.i
  %idxprom10.i = zext nneg i32 %cond.i to i64
  %arrayidx11.i = getelementptr inbounds nuw i64, ptr %sizes, i64 %idxprom10.i
  br label %cond.end12.i

cond.end12.i:                                     ; preds = %cond.false9.i, %cond.true5.i
  %cond13.in.i = phi ptr [ %arrayidx8.i, %cond.true5.i ], [ %arrayidx11.i, %cond.false9.i ]
  %cond13.i = load i64, ptr %cond13.in.i, align 8
  %arrayidx15.i = getelementptr inbounds nuw i64, ptr %vla, i64 %indvars.iv.i
  store i64 %cond13.i, ptr %arrayidx15.i, align 8
  %mul.i = mul i64 %cond13.i, %bytes.032.i
  %indvars.iv.next.i = add nuw nsw i64 %indvars.iv.i, 1
  %exitcond.not.i = icmp eq i64 %indvars.iv.next.i, %wide.trip.count.i
  br i1 %exitcond.not.i, label %dims_of.exit, label %for.body.i

dims_of.exit:                                     ; preds = %cond.end12.i, %entry
  %bytes.0.lcssa.i = phi i64 [ %conv.i, %entry ], [ %mul.i, %cond.end12.i ]
  %dtype = getelementptr inbounds nuw i8, ptr %r, i64 52
  %6 = load i32, ptr %dtype, align 4
  %call2 = call ptr @TF_AllocateOutput(ptr noundef %ctx, i32 noundef %i, i32 noundef %6, ptr noundef nonnull %vla, i32 noundef %0, i64 noundef %bytes.0.lcssa.i, ptr noundef %status) #7
  ret ptr %call2
}

declare ptr @TF_AllocateOutput(ptr noundef, i32 noundef, i32 noundef, ptr noundef, i32 noundef, i64 noundef, ptr noundef) local_unnamed_addr #1

declare i32 @pthread_mutex_lock(ptr noundef) local_unnamed_addr #1

declare i32 @pthread_mutex_unlock(ptr noundef) local_unnamed_addr #1

declare i32 @posix_memalign(ptr noundef, i64 noundef, i64 noundef) local_unnamed_addr #1

; Function Attrs: nounwind
define internal void @parallel_for(ptr readnone captures(none) %self, i64 noundef %n, ptr noundef %task, ptr noundef %closure) #0 {
entry:
  %cmp = icmp sgt i64 %n, 1
  br i1 %cmp, label %cond.true, label %cond.end

cond.true:                                        ; preds = %entry
  %0 = load atomic i64, ptr @pool acquire, align 8
  %1 = inttoptr i64 %0 to ptr
  %tobool.not.i = icmp eq i64 %0, 0
  br i1 %tobool.not.i, label %lor.lhs.false.i, label %cond.end

lor.lhs.false.i:                                  ; preds = %cond.true
  %2 = load atomic i32, ptr @pool_is_asked_for monotonic, align 4
  %tobool2.not.i = icmp eq i32 %2, 0
  br i1 %tobool2.not.i, label %lor.lhs.false3.i, label %cond.end

lor.lhs.false3.i:                                 ; preds = %lor.lhs.false.i
  %3 = atomicrmw xchg ptr @pool_is_asked_for, i32 1 seq_cst, align 4
  %tobool5.not.i = icmp eq i32 %3, 0
  br i1 %tobool5.not.i, label %if.end.i, label %cond.end

if.end.i:                                         ; preds = %lor.lhs.false3.i
  %4 = load i64, ptr @tfaot_threads, align 8
  %cmp.i = icmp sgt i64 %4, 0
  br i1 %cmp.i, label %cond.true.i, label %cond.false.i

cond.true.i:                                      ; preds = %if.end.i
  %conv.i = trunc i64 %4 to i32
  br label %cond.end.i

cond.false.i:                                     ; preds = %if.end.i
  %call.i = tail call fastcc i32 @processors() #8
  br label %cond.end.i

cond.end.i:                                       ; preds = %cond.false.i, %cond.true.i
  %cond.i = phi i32 [ %conv.i, %cond.true.i ], [ %call.i, %cond.false.i ]
  %cmp619.i = icmp sgt i32 %cond.i, 1
  br i1 %cmp619.i, label %for.body.i, label %for.cond.cleanup.i

for.cond.cleanup.i:                               ; preds = %for.body.i, %cond.end.i
  %made.0.lcssa.i = phi ptr [ null, %cond.end.i ], [ %call9.i, %for.body.i ]
  %5 = ptrtoint ptr %made.0.lcssa.i to i64
  store atomic i64 %5, ptr @pool release, align 8
  br label %cond.end

for.body.i:                                       ; preds = %cond.end.i, %for.body.i
  %n.020.i = phi i32 [ %div18.i, %for.body.i ], [ %cond.i, %cond.end.i ]
  %call9.i = tail call ptr @tfaot_pool_start(i32 noundef %n.020.i) #7
  %div18.i = lshr i32 %n.020.i, 1
  %cmp6.i = icmp samesign ugt i32 %n.020.i, 3
  %tobool8.not.i = icmp eq ptr %call9.i, null
  %6 = select i1 %cmp6.i, i1 %tobool8.not.i, i1 false
  br i1 %6, label %for.body.i, label %for.cond.cleanup.i

cond.end:                                         ; preds = %for.cond.cleanup.i, %lor.lhs.false3.i, %lor.lhs.false.i, %cond.true, %entry
  %cond = phi ptr [ null, %entry ], [ %made.0.lcssa.i, %for.cond.cleanup.i ], [ %1, %lor.lhs.false3.i ], [ %1, %lor.lhs.false.i ], [ %1, %cond.true ]
  tail call void @tfaot_pool_share(ptr noundef %cond, i64 noundef %n, ptr noundef %task, ptr noundef %closure) #7
  ret void
}

declare hidden void @tfaot_pool_share(ptr noundef, i64 noundef, ptr noundef, ptr noundef) local_unnamed_addr #1

; Function Attrs: nounwind
define internal fastcc range(i32 1, -2147483648) i32 @processors() unnamed_addr #0 {
entry:
  %mask = alloca [16 x i64], align 16
  call void @llvm.lifetime.start.p0(ptr nonnull %mask) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 16 dereferenceable(128) %mask, i8 0, i64 128, i1 false)
  %tobool.not = icmp eq ptr @sched_getaffinity, null
  br i1 %tobool.not, label %if.end, label %land.lhs.true

land.lhs.true:                                    ; preds = %entry
  %call = call i32 @sched_getaffinity(i32 noundef 0, i64 noundef 128, ptr noundef nonnull %mask) #7
  %cmp = icmp eq i32 %call, 0
  br i1 %cmp, label %for.body, label %if.end

for.cond.cleanup:                                 ; preds = %for.cond.cleanup4
  %0 = call i32 @llvm.smax.i32(i32 %n.1.lcssa, i32 1)
  br label %if.end

for.body:                                         ; preds = %land.lhs.true, %for.cond.cleanup4
  %indvars.iv = phi i64 [ %indvars.iv.next, %for.cond.cleanup4 ], [ 0, %land.lhs.true ]
  %n.019 = phi i32 [ %n.1.lcssa, %for.cond.cleanup4 ], [ 0, %land.lhs.true ]
  %arrayidx = getelementptr inbounds nuw i64, ptr %mask, i64 %indvars.iv
  %1 = load i64, ptr %arrayidx, align 8
  %tobool3.not16 = icmp eq i64 %1, 0
  br i1 %tobool3.not16, label %for.cond.cleanup4, label %for.body5

for.cond.cleanup4:                                ; preds = %for.body5, %for.body
  %n.1.lcssa = phi i32 [ %n.019, %for.body ], [ %inc, %for.body5 ]
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, 16
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body

for.body5:                                        ; preds = %for.body, %for.body5
  %m.018 = phi i64 [ %and, %for.body5 ], [ %1, %for.body ]
  %n.117 = phi i32 [ %inc, %for.body5 ], [ %n.019, %for.body ]
  %inc = add nsw i32 %n.117, 1
  %sub = add i64 %m.018, -1
  %and = and i64 %sub, %m.018
  %tobool3.not = icmp eq i64 %and, 0
  br i1 %tobool3.not, label %for.cond.cleanup4, label %for.body5

if.end:                                           ; preds = %for.cond.cleanup, %land.lhs.true, %entry
  %n.2 = phi i32 [ %0, %for.cond.cleanup ], [ 1, %land.lhs.true ], [ 1, %entry ]
  call void @llvm.lifetime.end.p0(ptr nonnull %mask) #9
  ret i32 %n.2
}

declare hidden ptr @tfaot_pool_start(i32 noundef) local_unnamed_addr #1

declare extern_weak i32 @sched_getaffinity(i32 noundef, i64 noundef, ptr noundef) #1

declare void @TF_DeleteTensor(ptr noundef) local_unnamed_addr #1

declare i64 @write(i32 noundef, ptr noundef, i64 noundef) local_unnamed_addr #1

declare i64 @strlen(ptr noundef) local_unnamed_addr #1

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.smax.i32(i32, i32) #6

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.smin.i64(i64, i64) #6

attributes #0 = { nounwind "no-builtins" "no-trapping-math"="true" }
attributes #1 = { "no-builtins" "no-trapping-math"="true" }
attributes #2 = { mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #3 = { mustprogress nofree norecurse nosync nounwind willreturn memory(none) "no-builtins" "no-trapping-math"="true" }
attributes #4 = { mustprogress nocallback nofree nounwind willreturn memory(argmem: write) }
attributes #5 = { mustprogress nocallback nofree nosync nounwind willreturn }
attributes #6 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #7 = { nobuiltin nounwind "no-builtins" }
attributes #8 = { nobuiltin "no-builtins" }
attributes #9 = { nounwind }


