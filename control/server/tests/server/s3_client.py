"""What is in the bucket, asked with boto3.

argv: address, authority, file of the access key, file of the secret key, and NAME FILE to copy one.
Names are printed one a line.
"""

import sys
from pathlib import Path

import boto3

address, authority, access, secret, *copy = sys.argv[1:]
s3 = boto3.client(
    "s3",
    endpoint_url=f"https://{address}",
    aws_access_key_id=Path(access).read_text().strip(),
    aws_secret_access_key=Path(secret).read_text().strip(),
    region_name="us-east-1",
    verify=authority,
)
for uploading in s3.list_multipart_uploads(Bucket="backups").get("Uploads", []):
    print(uploading["Key"] + " (unfinished)")
for there in s3.list_objects_v2(Bucket="backups").get("Contents", []):
    print(there["Key"])
if copy:
    s3.download_file("backups", *copy)
