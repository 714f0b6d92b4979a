"""Scrapy's crawler of sitemaps begins with a robots.txt. Prints the URL and the SHA-256 of each page as JSON lines.

Run by `scrapy runspider`, with `-a robots=URL`.
"""

import hashlib
import json

from scrapy.spiders import SitemapSpider


class Lists(SitemapSpider):
    name = "lists"
    custom_settings = {
        "HTTPERROR_ALLOW_ALL": True,
        "HTTPPROXY_ENABLED": False,
        "RETRY_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
    }

    def __init__(self, robots, **options):
        self.sitemap_urls = [robots]
        super().__init__(**options)

    def parse(self, response):
        page = {"url": response.url, "status": response.status, "sha256": hashlib.sha256(response.body).hexdigest()}
        print(json.dumps(page), flush=True)
