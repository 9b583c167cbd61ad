# What the steps of a build call of curl (-fsS -o FILE URL, and -fsS -T FILE URL), in perl.
curl() {
  perl -MIO::Socket::INET -e '
    use strict;
    my ($flags, $option, $file, $url) = @ARGV;
    my ($host, $path) = $url =~ m{^http://([^/]+)(/.*)$} or die "curl: not an http address: $url\n";
    my ($method, $body) = ("GET", "");
    if ($option eq "-T") {
      open my $in, "<:raw", $file or die "curl: $file: $!\n";
      local $/;
      ($method, $body) = ("PUT", <$in>);
    }
    my $store = IO::Socket::INET->new($host) or die "curl: $host: $@\n";
    binmode $store;
    print $store "$method $path HTTP/1.0\r\nHost: $host\r\nContent-Length: ", length $body, "\r\n\r\n", $body;
    my ($head, $content) = split /\r\n\r\n/, do { local $/; <$store> }, 2;
    my ($status) = $head =~ m{^HTTP/1\.\d (2?.*)};
    die "curl: $method $url: $status\n" unless $status =~ /^2/;
    exit if $option eq "-T";
    open my $out, ">:raw", $file or die "curl: $file: $!\n";
    print $out $content;
    close $out or die "curl: $file: $!\n";
  ' -- "$@"
}
