geo_id,type,coordinates,venue_id,venue_category_name
0,Point,"[1.998,1.002]","v ""2""",N/A
1,Point,"[1.997,1.003]","v ""3""",N/A
2,Point,"[1.996,1.004]","v ""4""",N/A
3,Point,"[2.0,1.0]","v ""0""",N/A
4,Point,"[1.999,1.001]","v ""1""",N/A
5,Point,"[1.995,1.005]","v ""5""",N/A
