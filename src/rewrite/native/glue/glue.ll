
%struct.Opaque = type { [128 x i8] }
%struct.Tensor = type { ptr, ptr, ptr, i64, i32, i32, i32 }

@workspace_mutex = internal global %struct.Opaque zeroinitializer, align 16
@tfaot_cluster_count = external hidden local_unnamed_addr constant i64, align 8
@tfaot_clusters = external hidden local_unnamed_addr constant [0 x ptr], align 8
@.str = private unnamed_addr constant [34 x i8] c"tfaot: TensorFlow refuses an op: \00", align 1
@.str.1 = private unnamed_addr constant [2 x i8] c"\0A\00", align 1
@.str.2 = private unnamed_addr constant [11 x i8] c"fits: bool\00", align 1
@.str.3 = private unnamed_addr constant [4 x i8] c"CPU\00", align 1
@.str.4 = private unnamed_addr constant [48 x i8] c"tfaot: no memory for the workspace of a cluster\00", align 1
@.str.5 = private unnamed_addr constant [75 x i8] c"tfaot: this processor lacks instructions that the cluster was compiled for\00", align 1
@.str.6 = private unnamed_addr constant [74 x i8] c"tfaot: the cluster was compiled for another shape or value of an argument\00", align 1
@.str.7 = private unnamed_addr constant [33 x i8] c"tfaot: no memory for an argument\00", align 1
@workspaces = internal unnamed_addr global ptr null, align 8
@tfaot_workspace_bytes = external hidden local_unnamed_addr constant i64, align 8
@executor = internal constant { ptr, i32, [4 x i8], ptr } { ptr null, i32 0, [4 x i8] zeroinitializer, ptr @parallel_for }, align 8
@pool = internal unnamed_addr global ptr null, align 8
@pool_is_asked_for = internal global i32 0, align 4
@tfaot_threads = external hidden local_unnamed_addr constant i64, align 8

; Function Attrs: nounwind
define hidden void @tfaot_set_shapes(ptr noundef readonly captures(none) %c, ptr noundef %ctx, ptr noundef %status) local_unnamed_addr #0 {
entry:
  %result_count = getelementptr inbounds nuw i8, ptr %c, i64 68
  %0 = load i32, ptr %result_count, align 4
  %cmp7 = icmp sgt i32 %0, 0
  br i1 %cmp7, label %land.rhs.lr.ph, label %for.cond.cleanup

land.rhs.lr.ph:                                   ; preds = %entry
  %results = getelementptr inbounds nuw i8, ptr %c, i64 24
  br label %land.rhs

land.rhs:                                         ; preds = %land.rhs.lr.ph, %for.body
  %indvars.iv = phi i64 [ 0, %land.rhs.lr.ph ], [ %indvars.iv.next, %for.body ]
  %call = tail call i32 @TF_GetCode(ptr noundef %status) #6
  %cmp1 = icmp eq i32 %call, 0
  br i1 %cmp1, label %for.body, label %for.cond.cleanup

for.cond.cleanup:                                 ; preds = %land.rhs, %for.body, %entry
  ret void

for.body:                                         ; preds = %land.rhs
  %1 = load ptr, ptr %results, align 8
  %arrayidx = getelementptr inbounds nuw %struct.Tensor, ptr %1, i64 %indvars.iv
  %2 = trunc nuw nsw i64 %indvars.iv to i32
  tail call fastcc void @set_shape(ptr noundef %ctx, i32 noundef %2, ptr noundef %arrayidx, ptr noundef %status) #7
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %3 = load i32, ptr %result_count, align 4
  %4 = sext i32 %3 to i64
  %cmp = icmp slt i64 %indvars.iv.next, %4
  br i1 %cmp, label %land.rhs, label %for.cond.cleanup
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #1

declare i32 @TF_GetCode(ptr noundef) local_unnamed_addr #2

; Function Attrs: nounwind
define internal fastcc void @set_shape(ptr noundef %ctx, i32 noundef %i, ptr noundef readonly captures(none) %r, ptr noundef %status) unnamed_addr #0 {
entry:
  %call = tail call ptr @TF_ShapeInferenceContextScalar(ptr noundef %ctx) #6
  %rank = getelementptr inbounds nuw i8, ptr %r, i64 40
  %0 = load i32, ptr %rank, align 8
  %cmp21 = icmp sgt i32 %0, 0
  br i1 %cmp21, label %land.rhs.lr.ph, label %for.cond.cleanup

land.rhs.lr.ph:                                   ; preds = %entry
  %dims = getelementptr inbounds nuw i8, ptr %r, i64 8
  br label %land.rhs

land.rhs:                                         ; preds = %land.rhs.lr.ph, %for.body
  %indvars.iv = phi i64 [ 0, %land.rhs.lr.ph ], [ %indvars.iv.next, %for.body ]
  %whole.023 = phi ptr [ %call, %land.rhs.lr.ph ], [ %call4, %for.body ]
  %call1 = tail call i32 @TF_GetCode(ptr noundef %status) #6
  %cmp2 = icmp eq i32 %call1, 0
  br i1 %cmp2, label %for.body, label %for.cond.cleanup

for.cond.cleanup:                                 ; preds = %land.rhs, %for.body, %entry
  %whole.0.lcssa = phi ptr [ %call, %entry ], [ %whole.023, %land.rhs ], [ %call4, %for.body ]
  %call5 = tail call i32 @TF_GetCode(ptr noundef %status) #6
  %cmp6 = icmp eq i32 %call5, 0
  br i1 %cmp6, label %if.then, label %if.end

for.body:                                         ; preds = %land.rhs
  %1 = load ptr, ptr %dims, align 8
  %arrayidx = getelementptr inbounds nuw i64, ptr %1, i64 %indvars.iv
  %2 = load i64, ptr %arrayidx, align 8
  %call3 = tail call ptr @TF_ShapeInferenceContextVectorFromSize(ptr noundef %ctx, i64 noundef %2) #6
  %call4 = tail call ptr @TF_NewShapeHandle() #6
  tail call void @TF_ShapeInferenceContextConcatenateShapes(ptr noundef %ctx, ptr noundef %whole.023, ptr noundef %call3, ptr noundef %call4, ptr noundef %status) #6
  tail call void @TF_DeleteShapeHandle(ptr noundef %whole.023) #6
  tail call void @TF_DeleteShapeHandle(ptr noundef %call3) #6
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %3 = load i32, ptr %rank, align 8
  %4 = sext i32 %3 to i64
  %cmp = icmp slt i64 %indvars.iv.next, %4
  br i1 %cmp, label %land.rhs, label %for.cond.cleanup

if.then:                                          ; preds = %for.cond.cleanup
  tail call void @TF_ShapeInferenceContextSetOutput(ptr noundef %ctx, i32 noundef %i, ptr noundef %whole.0.lcssa, ptr noundef %status) #6
  br label %if.end

if.end:                                           ; preds = %if.then, %for.cond.cleanup
  tail call void @TF_DeleteShapeHandle(ptr noundef %whole.0.lcssa) #6
  ret void
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #1

; Function Attrs: nounwind
define hidden void @tfaot_load() local_unnamed_addr #0 {
entry:
  %call = tail call i32 @pthread_mutex_init(ptr noundef nonnull @workspace_mutex, ptr noundef null) #6
  %call1 = tail call ptr @TF_NewStatus() #6
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
  %call2 = tail call fastcc i32 @register_op(ptr noundef nonnull %1, ptr noundef %2, i32 noundef 1, ptr noundef %call1) #7
  %tobool.not = icmp eq i32 %call2, 0
  br i1 %tobool.not, label %if.end, label %land.lhs.true

land.lhs.true:                                    ; preds = %for.body
  %fits = getelementptr inbounds nuw i8, ptr %1, i64 8
  %3 = load ptr, ptr %fits, align 8
  %call3 = tail call fastcc i32 @register_op(ptr noundef nonnull %1, ptr noundef %3, i32 noundef 0, ptr noundef %call1) #7
  %tobool4.not = icmp eq i32 %call3, 0
  br i1 %tobool4.not, label %if.end, label %for.cond

if.end:                                           ; preds = %land.lhs.true, %for.body
  %call.i = tail call i64 @strlen(ptr noundef nonnull @.str) #6
  %call1.i = tail call i64 @write(i32 noundef 2, ptr noundef nonnull @.str, i64 noundef %call.i) #6
  %call5 = tail call ptr @TF_Message(ptr noundef %call1) #6
  %call.i15 = tail call i64 @strlen(ptr noundef %call5) #6
  %call1.i16 = tail call i64 @write(i32 noundef 2, ptr noundef %call5, i64 noundef %call.i15) #6
  %call.i17 = tail call i64 @strlen(ptr noundef nonnull @.str.1) #6
  %call1.i18 = tail call i64 @write(i32 noundef 2, ptr noundef nonnull @.str.1, i64 noundef %call.i17) #6
  br label %cleanup6

cleanup6:                                         ; preds = %for.cond, %entry, %if.end
  tail call void @TF_DeleteStatus(ptr noundef %call1) #6
  ret void
}

declare i32 @pthread_mutex_init(ptr noundef, ptr noundef) local_unnamed_addr #2

declare ptr @TF_NewStatus() local_unnamed_addr #2

; Function Attrs: nounwind
define internal fastcc range(i32 0, 2) i32 @register_op(ptr noundef readonly captures(none) %c, ptr noundef %name, i32 noundef range(i32 0, 2) %native, ptr noundef %status) unnamed_addr #0 {
entry:
  %call = tail call ptr @TF_NewOpDefinitionBuilder(ptr noundef %name) #6
  %arg_count = getelementptr inbounds nuw i8, ptr %c, i64 64
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
  %result_count = getelementptr inbounds nuw i8, ptr %c, i64 68
  %results = getelementptr inbounds nuw i8, ptr %c, i64 24
  %1 = load i32, ptr %result_count, align 4
  %cmp359 = icmp sgt i32 %1, 0
  br i1 %cmp359, label %for.body5, label %cond.true

for.body:                                         ; preds = %for.body.lr.ph, %for.body
  %indvars.iv = phi i64 [ 0, %for.body.lr.ph ], [ %indvars.iv.next, %for.body ]
  %2 = load ptr, ptr %args, align 8
  %arrayidx = getelementptr inbounds nuw %struct.Tensor, ptr %2, i64 %indvars.iv
  %3 = load ptr, ptr %arrayidx, align 8
  tail call void @TF_OpDefinitionBuilderAddInput(ptr noundef %call, ptr noundef %3) #6
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
  tail call void @TF_OpDefinitionBuilderAddOutput(ptr noundef %call, ptr noundef %7) #6
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
  tail call void @TF_OpDefinitionBuilderAddOutput(ptr noundef %call, ptr noundef nonnull @.str.2) #6
  br label %cond.end

cond.end:                                         ; preds = %cond.end.critedge, %cond.true
  %tobool.not51 = phi ptr [ @compute, %cond.true ], [ @fits_compute, %cond.end.critedge ]
  %cond = phi ptr [ %10, %cond.true ], [ @scalar_shape, %cond.end.critedge ]
  tail call void @TF_OpDefinitionBuilderSetShapeInferenceFunction(ptr noundef %call, ptr noundef %cond) #6
  tail call void @TF_RegisterOpDefinition(ptr noundef %call, ptr noundef %status) #6
  %call14 = tail call i32 @TF_GetCode(ptr noundef %status) #6
  %cmp15.not = icmp eq i32 %call14, 0
  br i1 %cmp15.not, label %if.end17, label %cleanup

if.end17:                                         ; preds = %cond.end
  %tobool.i = icmp ne ptr @TF_GetRegisteredKernelsForOp, null
  %tobool1.i = icmp ne ptr @TF_DeleteBuffer, null
  %or.cond.i = and i1 %tobool.i, %tobool1.i
  br i1 %or.cond.i, label %if.end.i, label %if.end21

if.end.i:                                         ; preds = %if.end17
  %call.i = tail call ptr @TF_GetRegisteredKernelsForOp(ptr noundef %name, ptr noundef %status) #6
  %tobool2.not.i = icmp eq ptr %call.i, null
  br i1 %tobool2.not.i, label %if.end21, label %if.end4.i

if.end4.i:                                        ; preds = %if.end.i
  %length.i = getelementptr inbounds nuw i8, ptr %call.i, i64 8
  %11 = load i64, ptr %length.i, align 8
  %cmp.i.not = icmp eq i64 %11, 0
  tail call void @TF_DeleteBuffer(ptr noundef nonnull %call.i) #6
  br i1 %cmp.i.not, label %if.end21, label %cleanup

if.end21:                                         ; preds = %if.end17, %if.end.i, %if.end4.i
  %create = getelementptr inbounds nuw i8, ptr %c, i64 32
  %12 = load ptr, ptr %create, align 8
  %call24 = tail call ptr @TF_NewKernelBuilder(ptr noundef %name, ptr noundef nonnull @.str.3, ptr noundef %12, ptr noundef nonnull %tobool.not51, ptr noundef nonnull @destroy) #6
  tail call void @TF_RegisterKernelBuilder(ptr noundef %name, ptr noundef %call24, ptr noundef %status) #6
  %call25 = tail call i32 @TF_GetCode(ptr noundef %status) #6
  %cmp26 = icmp eq i32 %call25, 0
  %conv = zext i1 %cmp26 to i32
  br label %cleanup

cleanup:                                          ; preds = %if.end4.i, %cond.end, %if.end21
  %retval.0 = phi i32 [ %conv, %if.end21 ], [ 0, %cond.end ], [ 1, %if.end4.i ]
  ret i32 %retval.0
}

declare ptr @TF_Message(ptr noundef) local_unnamed_addr #2

declare void @TF_DeleteStatus(ptr noundef) local_unnamed_addr #2

declare ptr @TF_ShapeInferenceContextScalar(ptr noundef) local_unnamed_addr #2

declare ptr @TF_ShapeInferenceContextVectorFromSize(ptr noundef, i64 noundef) local_unnamed_addr #2

declare ptr @TF_NewShapeHandle() local_unnamed_addr #2

declare void @TF_ShapeInferenceContextConcatenateShapes(ptr noundef, ptr noundef, ptr noundef, ptr noundef, ptr noundef) local_unnamed_addr #2

declare void @TF_DeleteShapeHandle(ptr noundef) local_unnamed_addr #2

declare void @TF_ShapeInferenceContextSetOutput(ptr noundef, i32 noundef, ptr noundef, ptr noundef) local_unnamed_addr #2

declare ptr @TF_NewOpDefinitionBuilder(ptr noundef) local_unnamed_addr #2

declare void @TF_OpDefinitionBuilderAddInput(ptr noundef, ptr noundef) local_unnamed_addr #2

declare void @TF_OpDefinitionBuilderAddOutput(ptr noundef, ptr noundef) local_unnamed_addr #2

declare void @TF_OpDefinitionBuilderSetShapeInferenceFunction(ptr noundef, ptr noundef) local_unnamed_addr #2

; Function Attrs: nounwind
define internal void @scalar_shape(ptr noundef %ctx, ptr noundef %status) #0 {
entry:
  %scalar = alloca %struct.Tensor, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %scalar) #8
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(48) %scalar, i8 0, i64 48, i1 false)
  %0 = getelementptr inbounds nuw i8, ptr %scalar, i64 24
  store i64 1, ptr %0, align 8
  %1 = getelementptr inbounds nuw i8, ptr %scalar, i64 32
  store i32 1, ptr %1, align 8
  %2 = getelementptr inbounds nuw i8, ptr %scalar, i64 36
  store i32 10, ptr %2, align 4
  call fastcc void @set_shape(ptr noundef %ctx, i32 noundef 0, ptr noundef nonnull %scalar, ptr noundef %status) #7
  call void @llvm.lifetime.end.p0(ptr nonnull %scalar) #8
  ret void
}

declare void @TF_RegisterOpDefinition(ptr noundef, ptr noundef) local_unnamed_addr #2

declare ptr @TF_NewKernelBuilder(ptr noundef, ptr noundef, ptr noundef, ptr noundef, ptr noundef) local_unnamed_addr #2

; Function Attrs: nounwind
define internal void @compute(ptr noundef readonly captures(none) %state, ptr noundef %ctx) #0 {
entry:
  %made.i.i = alloca ptr, align 8
  %arg_count = getelementptr inbounds nuw i8, ptr %state, i64 64
  %0 = load i32, ptr %arg_count, align 8
  %result_count = getelementptr inbounds nuw i8, ptr %state, i64 68
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
  %vla8 = alloca ptr, i64 %3, align 16
  %cmp.not83 = icmp slt i32 %add, 0
  br i1 %cmp.not83, label %for.cond10.preheader, label %for.body.preheader

for.body.preheader:                               ; preds = %entry
  %5 = add i32 %0, %1
  %6 = add i32 %5, 1
  %wide.trip.count = zext i32 %6 to i64
  br label %for.body

for.cond10.preheader:                             ; preds = %for.body, %entry
  %cmp11.not85 = icmp slt i32 %0, 0
  br i1 %cmp11.not85, label %for.cond.cleanup12, label %for.body13.preheader

for.body13.preheader:                             ; preds = %for.cond10.preheader
  %7 = add nuw i32 %0, 1
  %wide.trip.count96 = zext i32 %7 to i64
  br label %for.body13

for.body:                                         ; preds = %for.body.preheader, %for.body
  %indvars.iv = phi i64 [ 0, %for.body.preheader ], [ %indvars.iv.next, %for.body ]
  %arrayidx = getelementptr inbounds nuw ptr, ptr %vla, i64 %indvars.iv
  store ptr null, ptr %arrayidx, align 8
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, %wide.trip.count
  br i1 %exitcond.not, label %for.cond10.preheader, label %for.body

for.cond.cleanup12:                               ; preds = %for.body13, %for.cond10.preheader
  %call20 = tail call ptr @TF_NewStatus() #6
  %8 = load i32, ptr %arg_count, align 8
  %cmp.not84.i = icmp sgt i32 %8, 0
  br i1 %cmp.not84.i, label %for.body.lr.ph.i, label %for.cond4.preheader.i

for.body.lr.ph.i:                                 ; preds = %for.cond.cleanup12
  %args.i = getelementptr inbounds nuw i8, ptr %state, i64 16
  br label %for.body.i

for.cond.i:                                       ; preds = %take_argument.exit.i
  %indvars.iv.next.i = add nuw nsw i64 %indvars.iv.i, 1
  %9 = load i32, ptr %arg_count, align 8
  %10 = sext i32 %9 to i64
  %cmp.not.i = icmp slt i64 %indvars.iv.next.i, %10
  br i1 %cmp.not.i, label %for.body.i, label %for.cond4.preheader.i

for.cond4.preheader.i:                            ; preds = %for.cond.i, %for.cond.cleanup12
  %11 = load i32, ptr %result_count, align 4
  %cmp5.not87.i = icmp sgt i32 %11, 0
  br i1 %cmp5.not87.i, label %for.body7.lr.ph.i, label %for.end29.i

for.body7.lr.ph.i:                                ; preds = %for.cond4.preheader.i
  %results.i = getelementptr inbounds nuw i8, ptr %state, i64 24
  br label %for.body7.i

for.body.i:                                       ; preds = %for.cond.i, %for.body.lr.ph.i
  %indvars.iv.i = phi i64 [ 0, %for.body.lr.ph.i ], [ %indvars.iv.next.i, %for.cond.i ]
  %taken.085.i = phi i32 [ 0, %for.body.lr.ph.i ], [ %taken.1.i, %for.cond.i ]
  %12 = load ptr, ptr %args.i, align 8
  %arrayidx.i = getelementptr inbounds nuw %struct.Tensor, ptr %12, i64 %indvars.iv.i
  %arrayidx.i.i = getelementptr inbounds nuw ptr, ptr %vla, i64 %indvars.iv.i
  %13 = trunc nuw nsw i64 %indvars.iv.i to i32
  call void @TF_GetInput(ptr noundef %ctx, i32 noundef %13, ptr noundef nonnull %arrayidx.i.i, ptr noundef %call20) #6
  %call1.i.i = call i32 @TF_GetCode(ptr noundef %call20) #6
  %cmp.not.i.i = icmp eq i32 %call1.i.i, 0
  br i1 %cmp.not.i.i, label %if.end.i.i, label %take_argument.exit.i

if.end.i.i:                                       ; preds = %for.body.i
  %14 = load ptr, ptr %arrayidx.i.i, align 8
  %call5.i.i = call fastcc i32 @fits(ptr noundef readonly %arrayidx.i, ptr noundef %14) #7
  %tobool.not.i.i = icmp eq i32 %call5.i.i, 0
  br i1 %tobool.not.i.i, label %if.then6.i.i, label %if.end7.i.i

if.then6.i.i:                                     ; preds = %if.end.i.i
  call void @TF_SetStatus(ptr noundef %call20, i32 noundef 13, ptr noundef nonnull @.str.6) #6
  br label %take_argument.exit.i

if.end7.i.i:                                      ; preds = %if.end.i.i
  %value.i.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 16
  %15 = load ptr, ptr %value.i.i, align 8
  %tobool8.not.i.i = icmp eq ptr %15, null
  br i1 %tobool8.not.i.i, label %if.end10.i.i, label %take_argument.exit.i

if.end10.i.i:                                     ; preds = %if.end7.i.i
  %16 = load ptr, ptr %arrayidx.i.i, align 8
  %call14.i.i = call ptr @TF_TensorData(ptr noundef %16) #6
  %17 = ptrtoint ptr %call14.i.i to i64
  %align.i.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 32
  %18 = load i32, ptr %align.i.i, align 8
  %sub.i.i = add i32 %18, -1
  %conv.i.i = zext i32 %sub.i.i to i64
  %and.i.i = and i64 %conv.i.i, %17
  %cmp15.not.i.i = icmp eq i64 %and.i.i, 0
  br i1 %cmp15.not.i.i, label %if.end26.i.i, label %if.then17.i.i

if.then17.i.i:                                    ; preds = %if.end10.i.i
  %bytes.i.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 24
  %19 = load i64, ptr %bytes.i.i, align 8
  %call18.i.i = call ptr @malloc(i64 noundef %19) #6
  %arrayidx20.i.i = getelementptr inbounds nuw ptr, ptr %vla8, i64 %indvars.iv.i
  store ptr %call18.i.i, ptr %arrayidx20.i.i, align 8
  %tobool21.not.not.i.i = icmp eq ptr %call18.i.i, null
  br i1 %tobool21.not.not.i.i, label %if.then22.i.i, label %if.end23.i.i

if.then22.i.i:                                    ; preds = %if.then17.i.i
  call void @TF_SetStatus(ptr noundef %call20, i32 noundef 8, ptr noundef nonnull @.str.7) #6
  br label %cleanup.i.i

if.end23.i.i:                                     ; preds = %if.then17.i.i
  %20 = load i64, ptr %bytes.i.i, align 8
  %call25.i.i = call ptr @memcpy(ptr noundef nonnull %call18.i.i, ptr noundef %call14.i.i, i64 noundef %20) #6
  br label %cleanup.i.i

cleanup.i.i:                                      ; preds = %if.end23.i.i, %if.then22.i.i
  %data.0.i.i = phi ptr [ %call25.i.i, %if.end23.i.i ], [ %call14.i.i, %if.then22.i.i ]
  br i1 %tobool21.not.not.i.i, label %take_argument.exit.i, label %if.end26.i.i

if.end26.i.i:                                     ; preds = %cleanup.i.i, %if.end10.i.i
  %data.1.i.i = phi ptr [ %data.0.i.i, %cleanup.i.i ], [ %call14.i.i, %if.end10.i.i ]
  %inc.i.i = add nsw i32 %taken.085.i, 1
  %idxprom27.i.i = sext i32 %taken.085.i to i64
  %arrayidx28.i.i = getelementptr inbounds ptr, ptr %vla3, i64 %idxprom27.i.i
  store ptr %data.1.i.i, ptr %arrayidx28.i.i, align 8
  br label %take_argument.exit.i

take_argument.exit.i:                             ; preds = %if.end26.i.i, %cleanup.i.i, %if.end7.i.i, %if.then6.i.i, %for.body.i
  %taken.1.i = phi i32 [ %taken.085.i, %if.then6.i.i ], [ %inc.i.i, %if.end26.i.i ], [ %taken.085.i, %cleanup.i.i ], [ %taken.085.i, %if.end7.i.i ], [ %taken.085.i, %for.body.i ]
  %call1.i = call i32 @TF_GetCode(ptr noundef %call20) #6
  %cmp2.not.i = icmp eq i32 %call1.i, 0
  br i1 %cmp2.not.i, label %for.cond.i, label %run.exit

for.body7.i:                                      ; preds = %if.end14.i, %for.body7.lr.ph.i
  %indvars.iv91.i = phi i64 [ 0, %for.body7.lr.ph.i ], [ %indvars.iv.next92.i, %if.end14.i ]
  %21 = load ptr, ptr %results.i, align 8
  %arrayidx9.i = getelementptr inbounds nuw %struct.Tensor, ptr %21, i64 %indvars.iv91.i
  %dtype.i = getelementptr inbounds nuw i8, ptr %arrayidx9.i, i64 36
  %22 = load i32, ptr %dtype.i, align 4
  %dims.i = getelementptr inbounds nuw i8, ptr %arrayidx9.i, i64 8
  %23 = load ptr, ptr %dims.i, align 8
  %rank.i = getelementptr inbounds nuw i8, ptr %arrayidx9.i, i64 40
  %24 = load i32, ptr %rank.i, align 8
  %bytes.i = getelementptr inbounds nuw i8, ptr %arrayidx9.i, i64 24
  %25 = load i64, ptr %bytes.i, align 8
  %26 = trunc nuw nsw i64 %indvars.iv91.i to i32
  %call10.i = call ptr @TF_AllocateOutput(ptr noundef %ctx, i32 noundef %26, i32 noundef %22, ptr noundef %23, i32 noundef %24, i64 noundef %25, ptr noundef %call20) #6
  %call11.i = call i32 @TF_GetCode(ptr noundef %call20) #6
  %cmp12.not.i = icmp eq i32 %call11.i, 0
  br i1 %cmp12.not.i, label %if.end14.i, label %run.exit

if.end14.i:                                       ; preds = %for.body7.i
  %27 = load i32, ptr %arg_count, align 8
  %add.i = add nsw i32 %27, %26
  %idxprom16.i = sext i32 %add.i to i64
  %arrayidx17.i = getelementptr inbounds ptr, ptr %vla, i64 %idxprom16.i
  store ptr %call10.i, ptr %arrayidx17.i, align 8
  %call18.i = call ptr @TF_TensorData(ptr noundef %call10.i) #6
  %arrayidx21.i = getelementptr inbounds nuw ptr, ptr %vla6, i64 %indvars.iv91.i
  store ptr %call18.i, ptr %arrayidx21.i, align 8
  %indvars.iv.next92.i = add nuw nsw i64 %indvars.iv91.i, 1
  %28 = load i32, ptr %result_count, align 4
  %29 = sext i32 %28 to i64
  %cmp5.not.i = icmp slt i64 %indvars.iv.next92.i, %29
  br i1 %cmp5.not.i, label %for.body7.i, label %for.end29.i

for.end29.i:                                      ; preds = %if.end14.i, %for.cond4.preheader.i
  %call.i.i = call i32 @pthread_mutex_lock(ptr noundef nonnull @workspace_mutex) #6
  %30 = load ptr, ptr @workspaces, align 8
  %tobool.not.i78.i = icmp eq ptr %30, null
  br i1 %tobool.not.i78.i, label %land.lhs.true.critedge.i.i, label %if.then.i.i

if.then.i.i:                                      ; preds = %for.end29.i
  %31 = load ptr, ptr %30, align 8
  store ptr %31, ptr @workspaces, align 8
  %call1.i79.i = call i32 @pthread_mutex_unlock(ptr noundef nonnull @workspace_mutex) #6
  call void @llvm.lifetime.start.p0(ptr nonnull %made.i.i) #8
  store ptr %30, ptr %made.i.i, align 8
  br label %if.end5.i.i

land.lhs.true.critedge.i.i:                       ; preds = %for.end29.i
  %call1.c.i.i = call i32 @pthread_mutex_unlock(ptr noundef nonnull @workspace_mutex) #6
  call void @llvm.lifetime.start.p0(ptr nonnull %made.i.i) #8
  store ptr null, ptr %made.i.i, align 8
  %32 = load i64, ptr @tfaot_workspace_bytes, align 8
  %call3.i.i = call i32 @posix_memalign(ptr noundef nonnull %made.i.i, i64 noundef 4096, i64 noundef %32) #6
  %cmp.not.i81.i = icmp eq i32 %call3.i.i, 0
  br i1 %cmp.not.i81.i, label %if.end5.i.i, label %take_workspace.exit.i

if.end5.i.i:                                      ; preds = %land.lhs.true.critedge.i.i, %if.then.i.i
  %33 = load ptr, ptr %made.i.i, align 8
  br label %take_workspace.exit.i

take_workspace.exit.i:                            ; preds = %if.end5.i.i, %land.lhs.true.critedge.i.i
  %retval.0.i.i = phi ptr [ %33, %if.end5.i.i ], [ null, %land.lhs.true.critedge.i.i ]
  call void @llvm.lifetime.end.p0(ptr nonnull %made.i.i) #8
  %tobool.not.i = icmp eq ptr %retval.0.i.i, null
  br i1 %tobool.not.i, label %if.then32.i, label %if.end33.i

if.then32.i:                                      ; preds = %take_workspace.exit.i
  call void @TF_SetStatus(ptr noundef %call20, i32 noundef 8, ptr noundef nonnull @.str.4) #6
  br label %run.exit

if.end33.i:                                       ; preds = %take_workspace.exit.i
  %run.i = getelementptr inbounds nuw i8, ptr %state, i64 48
  %34 = load ptr, ptr %run.i, align 8
  %call37.i = call i32 %34(ptr noundef nonnull %vla3, ptr noundef nonnull %vla6, ptr noundef nonnull %retval.0.i.i, ptr noundef nonnull @executor) #6
  %cmp38.not.i = icmp eq i32 %call37.i, 0
  br i1 %cmp38.not.i, label %run.exit, label %if.then39.i

if.then39.i:                                      ; preds = %if.end33.i
  call void @TF_SetStatus(ptr noundef %call20, i32 noundef 13, ptr noundef nonnull @.str.5) #6
  br label %run.exit

run.exit:                                         ; preds = %take_argument.exit.i, %for.body7.i, %if.then32.i, %if.end33.i, %if.then39.i
  %call.sroa.15.0 = phi ptr [ null, %if.then32.i ], [ %retval.0.i.i, %if.end33.i ], [ %retval.0.i.i, %if.then39.i ], [ null, %for.body7.i ], [ null, %take_argument.exit.i ]
  %call21 = call i32 @TF_GetCode(ptr noundef %call20) #6
  %cmp22.not = icmp eq i32 %call21, 0
  br i1 %cmp22.not, label %if.end, label %if.then

for.body13:                                       ; preds = %for.body13.preheader, %for.body13
  %indvars.iv93 = phi i64 [ 0, %for.body13.preheader ], [ %indvars.iv.next94, %for.body13 ]
  %arrayidx15 = getelementptr inbounds nuw ptr, ptr %vla8, i64 %indvars.iv93
  store ptr null, ptr %arrayidx15, align 8
  %indvars.iv.next94 = add nuw nsw i64 %indvars.iv93, 1
  %exitcond97.not = icmp eq i64 %indvars.iv.next94, %wide.trip.count96
  br i1 %exitcond97.not, label %for.cond.cleanup12, label %for.body13

if.then:                                          ; preds = %run.exit
  call void @TF_OpKernelContext_Failure(ptr noundef %ctx, ptr noundef %call20) #6
  br label %if.end

if.end:                                           ; preds = %if.then, %run.exit
  %tobool.not = icmp eq ptr %call.sroa.15.0, null
  br i1 %tobool.not, label %if.end26, label %if.then24

if.then24:                                        ; preds = %if.end
  %call.i = call i32 @pthread_mutex_lock(ptr noundef nonnull @workspace_mutex) #6
  %35 = load ptr, ptr @workspaces, align 8
  store ptr %35, ptr %call.sroa.15.0, align 8
  store ptr %call.sroa.15.0, ptr @workspaces, align 8
  %call1.i76 = call i32 @pthread_mutex_unlock(ptr noundef nonnull @workspace_mutex) #6
  br label %if.end26

if.end26:                                         ; preds = %if.then24, %if.end
  %cmp2987 = icmp sgt i32 %0, 0
  br i1 %cmp2987, label %for.body31.preheader, label %for.cond38.preheader

for.body31.preheader:                             ; preds = %if.end26
  %wide.trip.count101 = zext nneg i32 %0 to i64
  br label %for.body31

for.cond38.preheader:                             ; preds = %for.body31, %if.end26
  %cmp3989 = icmp sgt i32 %add, 0
  br i1 %cmp3989, label %for.body41.preheader, label %for.cond.cleanup40

for.body41.preheader:                             ; preds = %for.cond38.preheader
  %wide.trip.count106 = zext nneg i32 %add to i64
  br label %for.body41

for.body31:                                       ; preds = %for.body31.preheader, %for.body31
  %indvars.iv98 = phi i64 [ 0, %for.body31.preheader ], [ %indvars.iv.next99, %for.body31 ]
  %arrayidx33 = getelementptr inbounds nuw ptr, ptr %vla8, i64 %indvars.iv98
  %36 = load ptr, ptr %arrayidx33, align 8
  call void @free(ptr noundef %36) #6
  %indvars.iv.next99 = add nuw nsw i64 %indvars.iv98, 1
  %exitcond102.not = icmp eq i64 %indvars.iv.next99, %wide.trip.count101
  br i1 %exitcond102.not, label %for.cond38.preheader, label %for.body31

for.cond.cleanup40:                               ; preds = %for.inc49, %for.cond38.preheader
  call void @TF_DeleteStatus(ptr noundef %call20) #6
  ret void

for.body41:                                       ; preds = %for.body41.preheader, %for.inc49
  %indvars.iv103 = phi i64 [ 0, %for.body41.preheader ], [ %indvars.iv.next104, %for.inc49 ]
  %arrayidx43 = getelementptr inbounds nuw ptr, ptr %vla, i64 %indvars.iv103
  %37 = load ptr, ptr %arrayidx43, align 8
  %tobool44.not = icmp eq ptr %37, null
  br i1 %tobool44.not, label %for.inc49, label %if.then45

if.then45:                                        ; preds = %for.body41
  call void @TF_DeleteTensor(ptr noundef nonnull %37) #6
  br label %for.inc49

for.inc49:                                        ; preds = %for.body41, %if.then45
  %indvars.iv.next104 = add nuw nsw i64 %indvars.iv103, 1
  %exitcond107.not = icmp eq i64 %indvars.iv.next104, %wide.trip.count106
  br i1 %exitcond107.not, label %for.cond.cleanup40, label %for.body41
}

; Function Attrs: nounwind
define internal void @fits_compute(ptr noundef readonly captures(none) %state, ptr noundef %ctx) #0 {
entry:
  %arg = alloca ptr, align 8
  %call = tail call ptr @TF_NewStatus() #6
  %supported = getelementptr inbounds nuw i8, ptr %state, i64 56
  %0 = load ptr, ptr %supported, align 8
  %call1 = tail call i32 %0() #6
  %cmp = icmp ne i32 %call1, 0
  %conv = zext i1 %cmp to i32
  %arg_count = getelementptr inbounds nuw i8, ptr %state, i64 64
  %1 = load i32, ptr %arg_count, align 8
  %cmp239 = icmp sgt i32 %1, 0
  %2 = select i1 %cmp239, i1 %cmp, i1 false
  br i1 %2, label %for.body.lr.ph, label %cleanup8

for.body.lr.ph:                                   ; preds = %entry
  %args = getelementptr inbounds nuw i8, ptr %state, i64 16
  br label %for.body

for.cond:                                         ; preds = %cleanup
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %3 = load i32, ptr %arg_count, align 8
  %4 = sext i32 %3 to i64
  %cmp2 = icmp slt i64 %indvars.iv.next, %4
  %tobool = icmp ne i32 %yes.1, 0
  %5 = select i1 %cmp2, i1 %tobool, i1 false
  br i1 %5, label %for.body, label %cleanup8

for.body:                                         ; preds = %for.body.lr.ph, %for.cond
  %indvars.iv = phi i64 [ 0, %for.body.lr.ph ], [ %indvars.iv.next, %for.cond ]
  call void @llvm.lifetime.start.p0(ptr nonnull %arg) #8
  store ptr null, ptr %arg, align 8
  %6 = trunc nuw nsw i64 %indvars.iv to i32
  call void @TF_GetInput(ptr noundef %ctx, i32 noundef %6, ptr noundef nonnull %arg, ptr noundef %call) #6
  %call4 = call i32 @TF_GetCode(ptr noundef %call) #6
  %cmp5.not = icmp eq i32 %call4, 0
  br i1 %cmp5.not, label %if.end, label %cleanup

if.end:                                           ; preds = %for.body
  %7 = load ptr, ptr %args, align 8
  %arrayidx = getelementptr inbounds nuw %struct.Tensor, ptr %7, i64 %indvars.iv
  %8 = load ptr, ptr %arg, align 8
  %call7 = call fastcc i32 @fits(ptr noundef %arrayidx, ptr noundef %8) #7
  %9 = load ptr, ptr %arg, align 8
  call void @TF_DeleteTensor(ptr noundef %9) #6
  br label %cleanup

cleanup:                                          ; preds = %for.body, %if.end
  %cleanup.dest.slot.0 = phi i32 [ 0, %if.end ], [ 5, %for.body ]
  %yes.1 = phi i32 [ %call7, %if.end ], [ 1, %for.body ]
  call void @llvm.lifetime.end.p0(ptr nonnull %arg) #8
  br i1 %cmp5.not, label %for.cond, label %cleanup8

cleanup8:                                         ; preds = %cleanup, %for.cond, %entry
  %cleanup.dest.slot.1 = phi i32 [ 2, %entry ], [ %cleanup.dest.slot.0, %cleanup ], [ 2, %for.cond ]
  %yes.2 = phi i32 [ %conv, %entry ], [ %yes.1, %for.cond ], [ %yes.1, %cleanup ]
  switch i32 %cleanup.dest.slot.1, label %cleanup18 [
    i32 2, label %for.end
    i32 5, label %failed
  ]

for.end:                                          ; preds = %cleanup8
  %call10 = call ptr @TF_AllocateOutput(ptr noundef %ctx, i32 noundef 0, i32 noundef 10, ptr noundef null, i32 noundef 0, i64 noundef 1, ptr noundef %call) #6
  %call11 = call i32 @TF_GetCode(ptr noundef %call) #6
  %cmp12.not = icmp eq i32 %call11, 0
  br i1 %cmp12.not, label %if.end15, label %failed

if.end15:                                         ; preds = %for.end
  %conv16 = trunc nuw nsw i32 %yes.2 to i8
  %call17 = call ptr @TF_TensorData(ptr noundef %call10) #6
  store i8 %conv16, ptr %call17, align 1
  call void @TF_DeleteTensor(ptr noundef %call10) #6
  br label %cleanup18.sink.split

failed:                                           ; preds = %for.end, %cleanup8
  call void @TF_OpKernelContext_Failure(ptr noundef %ctx, ptr noundef %call) #6
  br label %cleanup18.sink.split

cleanup18.sink.split:                             ; preds = %if.end15, %failed
  call void @TF_DeleteStatus(ptr noundef %call) #6
  br label %cleanup18

cleanup18:                                        ; preds = %cleanup18.sink.split, %cleanup8
  ret void
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none)
define internal void @destroy(ptr readnone captures(none) %state) #3 {
entry:
  ret void
}

declare void @TF_RegisterKernelBuilder(ptr noundef, ptr noundef, ptr noundef) local_unnamed_addr #2

; Function Attrs: mustprogress nocallback nofree nounwind willreturn memory(argmem: write)
declare void @llvm.memset.p0.i64(ptr writeonly captures(none), i8, i64, i1 immarg) #4

declare extern_weak ptr @TF_GetRegisteredKernelsForOp(ptr noundef, ptr noundef) #2

declare extern_weak void @TF_DeleteBuffer(ptr noundef) #2

declare void @TF_OpKernelContext_Failure(ptr noundef, ptr noundef) local_unnamed_addr #2

declare void @free(ptr noundef) local_unnamed_addr #2

declare void @TF_DeleteTensor(ptr noundef) local_unnamed_addr #2

declare ptr @TF_AllocateOutput(ptr noundef, i32 noundef, i32 noundef, ptr noundef, i32 noundef, i64 noundef, ptr noundef) local_unnamed_addr #2

declare ptr @TF_TensorData(ptr noundef) local_unnamed_addr #2

declare void @TF_SetStatus(ptr noundef, i32 noundef, ptr noundef) local_unnamed_addr #2

declare void @TF_GetInput(ptr noundef, i32 noundef, ptr noundef, ptr noundef) local_unnamed_addr #2

; Function Attrs: nounwind
define internal fastcc range(i32 0, 2) i32 @fits(ptr noundef readonly captures(none) %want, ptr noundef %got) unnamed_addr #0 {
entry:
  %call = tail call i32 @TF_NumDims(ptr noundef %got) #6
  %rank = getelementptr inbounds nuw i8, ptr %want, i64 40
  %0 = load i32, ptr %rank, align 8
  %cmp.not = icmp eq i32 %call, %0
  br i1 %cmp.not, label %for.cond.preheader, label %return

for.cond.preheader:                               ; preds = %entry
  %1 = load i32, ptr %rank, align 8
  %cmp2.not25 = icmp sgt i32 %1, 0
  br i1 %cmp2.not25, label %for.body.lr.ph, label %for.end

for.body.lr.ph:                                   ; preds = %for.cond.preheader
  %dims = getelementptr inbounds nuw i8, ptr %want, i64 8
  br label %for.body

for.cond:                                         ; preds = %for.body
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %2 = load i32, ptr %rank, align 8
  %3 = sext i32 %2 to i64
  %cmp2.not = icmp slt i64 %indvars.iv.next, %3
  br i1 %cmp2.not, label %for.body, label %for.end

for.body:                                         ; preds = %for.body.lr.ph, %for.cond
  %indvars.iv = phi i64 [ 0, %for.body.lr.ph ], [ %indvars.iv.next, %for.cond ]
  %4 = trunc nuw nsw i64 %indvars.iv to i32
  %call3 = tail call i64 @TF_Dim(ptr noundef %got, i32 noundef %4) #6
  %5 = load ptr, ptr %dims, align 8
  %arrayidx = getelementptr inbounds nuw i64, ptr %5, i64 %indvars.iv
  %6 = load i64, ptr %arrayidx, align 8
  %cmp4.not = icmp eq i64 %call3, %6
  br i1 %cmp4.not, label %for.cond, label %return

for.end:                                          ; preds = %for.cond, %for.cond.preheader
  %value = getelementptr inbounds nuw i8, ptr %want, i64 16
  %7 = load ptr, ptr %value, align 8
  %tobool.not = icmp eq ptr %7, null
  br i1 %tobool.not, label %return, label %lor.lhs.false

lor.lhs.false:                                    ; preds = %for.end
  %bytes = getelementptr inbounds nuw i8, ptr %want, i64 24
  %8 = load i64, ptr %bytes, align 8
  %cmp7 = icmp eq i64 %8, 0
  br i1 %cmp7, label %return, label %lor.rhs

lor.rhs:                                          ; preds = %lor.lhs.false
  %call9 = tail call ptr @TF_TensorData(ptr noundef %got) #6
  %9 = load i64, ptr %bytes, align 8
  %call11 = tail call i32 @memcmp(ptr noundef nonnull %7, ptr noundef %call9, i64 noundef %9) #6
  %cmp12 = icmp eq i32 %call11, 0
  %10 = zext i1 %cmp12 to i32
  br label %return

return:                                           ; preds = %for.body, %for.end, %lor.lhs.false, %lor.rhs, %entry
  %retval.1 = phi i32 [ %10, %lor.rhs ], [ 0, %entry ], [ 1, %lor.lhs.false ], [ 1, %for.end ], [ 0, %for.body ]
  ret i32 %retval.1
}

declare ptr @malloc(i64 noundef) local_unnamed_addr #2

declare ptr @memcpy(ptr noundef, ptr noundef, i64 noundef) local_unnamed_addr #2

declare i32 @TF_NumDims(ptr noundef) local_unnamed_addr #2

declare i64 @TF_Dim(ptr noundef, i32 noundef) local_unnamed_addr #2

declare i32 @memcmp(ptr noundef, ptr noundef, i64 noundef) local_unnamed_addr #2

declare i32 @pthread_mutex_lock(ptr noundef) local_unnamed_addr #2

declare i32 @pthread_mutex_unlock(ptr noundef) local_unnamed_addr #2

declare i32 @posix_memalign(ptr noundef, i64 noundef, i64 noundef) local_unnamed_addr #2

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
  %call.i = tail call fastcc i32 @processors() #7
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
  %call9.i = tail call ptr @tfaot_pool_start(i32 noundef %n.020.i) #6
  %div18.i = lshr i32 %n.020.i, 1
  %cmp6.i = icmp samesign ugt i32 %n.020.i, 3
  %tobool8.not.i = icmp eq ptr %call9.i, null
  %6 = select i1 %cmp6.i, i1 %tobool8.not.i, i1 false
  br i1 %6, label %for.body.i, label %for.cond.cleanup.i

cond.end:                                         ; preds = %for.cond.cleanup.i, %lor.lhs.false3.i, %lor.lhs.false.i, %cond.true, %entry
  %cond = phi ptr [ null, %entry ], [ %made.0.lcssa.i, %for.cond.cleanup.i ], [ %1, %lor.lhs.false3.i ], [ %1, %lor.lhs.false.i ], [ %1, %cond.true ]
  tail call void @tfaot_pool_share(ptr noundef %cond, i64 noundef %n, ptr noundef %task, ptr noundef %closure) #6
  ret void
}

declare hidden void @tfaot_pool_share(ptr noundef, i64 noundef, ptr noundef, ptr noundef) local_unnamed_addr #2

; Function Attrs: nounwind
define internal fastcc range(i32 1, -2147483648) i32 @processors() unnamed_addr #0 {
entry:
  %mask = alloca [16 x i64], align 16
  call void @llvm.lifetime.start.p0(ptr nonnull %mask) #8
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 16 dereferenceable(128) %mask, i8 0, i64 128, i1 false)
  %tobool.not = icmp eq ptr @sched_getaffinity, null
  br i1 %tobool.not, label %if.end, label %land.lhs.true

land.lhs.true:                                    ; preds = %entry
  %call = call i32 @sched_getaffinity(i32 noundef 0, i64 noundef 128, ptr noundef nonnull %mask) #6
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
  call void @llvm.lifetime.end.p0(ptr nonnull %mask) #8
  ret i32 %n.2
}

declare hidden ptr @tfaot_pool_start(i32 noundef) local_unnamed_addr #2

declare extern_weak i32 @sched_getaffinity(i32 noundef, i64 noundef, ptr noundef) #2

declare i64 @write(i32 noundef, ptr noundef, i64 noundef) local_unnamed_addr #2

declare i64 @strlen(ptr noundef) local_unnamed_addr #2

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.smax.i32(i32, i32) #5

attributes #0 = { nounwind "no-builtins" "no-trapping-math"="true" }
attributes #1 = { mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { "no-builtins" "no-trapping-math"="true" }
attributes #3 = { mustprogress nofree norecurse nosync nounwind willreturn memory(none) "no-builtins" "no-trapping-math"="true" }
attributes #4 = { mustprogress nocallback nofree nounwind willreturn memory(argmem: write) }
attributes #5 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #6 = { nobuiltin nounwind "no-builtins" }
attributes #7 = { nobuiltin "no-builtins" }
attributes #8 = { nounwind }


