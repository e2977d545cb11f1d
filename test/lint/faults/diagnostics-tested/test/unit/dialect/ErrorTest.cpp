EXPECT_EQ(message, "an error that is tested "
                   "over two lines");
